"""batchviz: see, step by step and slot by slot, how a language model serves many requests at once.

`import batchviz` loads neither torch nor streamlit. The way in for readers is ARCHITECTURE.md.
"""

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
