"""batchviz: see, step by step and slot by slot, how a language model serves many requests at once.

`import batchviz` loads neither torch nor streamlit. The way in for readers is ARCHITECTURE.md.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # else an older one would end with a traceback
    raise SystemExit(f"batchviz needs Python 3.11 or newer; this is {sys.version.split()[0]}")

from batchviz.engine import Engine
from batchviz.request import FinishReason, Request, SamplingParams, Sequence, SequenceStatus
from batchviz.runner import RecordedRunner, ScriptedRunner
from batchviz.scheduler import Policy, make_scheduler
from batchviz.trace import SlotPhase, SlotSnapshot, StepSnapshot, Trace

__version__ = "0.1.0"

__all__ = [
    "Engine",
    "FinishReason",
    "Policy",
    "RecordedRunner",
    "Request",
    "SamplingParams",
    "ScriptedRunner",
    "Sequence",
    "SequenceStatus",
    "SlotPhase",
    "SlotSnapshot",
    "StepSnapshot",
    "Trace",
    "__version__",
    "make_scheduler",
]
