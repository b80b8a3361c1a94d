"""A policy of one's own, named as `module:Class` in the terminal.

Owns: how it is found and made. Must not know: runs, files. A name that stands in a trace or a link is shown and never loaded:
code comes from the command line alone.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import NamedTuple

from batchviz.prefill import make_prefill
from batchviz.scenario import shown_text
from batchviz.scheduler import Policy, Scheduler
from batchviz.trace import RunConfig


class OwnPolicyError(ValueError):
    """A policy that cannot be used, or that broke a rule. The message is one sentence."""


class OwnPolicy(NamedTuple):
    """`name` is what was written; `kind` the class."""

    name: str
    kind: type[Scheduler]

    @property
    def base(self) -> Policy:
        """The policy that it is made from."""
        return self.kind.policy

    def make(self, config: RunConfig) -> Scheduler:
        """Its scheduler for a configuration. Raises OwnPolicyError if it cannot be made."""
        rule = make_prefill(config.prefill, config.num_slots, config.max_batched_tokens)
        try:
            return self.kind(config.num_slots, rule, config.kv_budget_tokens)
        except Exception as error:  # their code
            raise OwnPolicyError(f"{self.name} could not be made: {describe(error)}") from error


def find_policy(name: str) -> OwnPolicy:
    """Imports `module:Class`, from the working folder too. Raises OwnPolicyError."""
    module_name, _, class_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise OwnPolicyError(f"{shown_text(name)}: {describe(error)}") from error
        raise OwnPolicyError(
            f"there is no module {shown_text(module_name)} here or among the installed ones"
        ) from error
    except Exception as error:  # their code
        raise OwnPolicyError(f"{shown_text(name)} could not be imported: {describe(error)}") from error
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, Scheduler)):
        raise OwnPolicyError(
            f"{shown_text(name)} is not a scheduler; name a class that is made from batchviz.scheduler.ContinuousScheduler, "
            "StaticScheduler or Scheduler, as module:Class"
        )
    if not isinstance(getattr(kind, "policy", None), Policy) or getattr(kind, "__abstractmethods__", None):
        raise OwnPolicyError(
            f"{shown_text(name)} says no `policy`, or leaves a question open that a Scheduler must answer"
        )
    return OwnPolicy(name, kind)


def describe(error: BaseException) -> str:
    """What somebody else's code raised, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
