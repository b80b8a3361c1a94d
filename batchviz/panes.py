"""A pane's choice <-> what the engine is told.

Owns: `config_of`, `pane_of`. Must not know: links, pages, runs.
"""

from __future__ import annotations

from batchviz.link import PaneChoice
from batchviz.runs import DEFAULT_SLOT_CAPACITY, make_config
from batchviz.trace import RunConfig


def config_of(pane: PaneChoice, slot_capacity: int = DEFAULT_SLOT_CAPACITY) -> RunConfig:
    """What the engine is told. Raises ValueError with one sentence."""
    return make_config(
        pane.policy,
        pane.num_slots,
        slot_capacity,
        prefill=pane.prefill,
        max_batched_tokens=pane.max_batched_tokens,
        kv_budget_tokens=pane.kv_budget_tokens,
        group_timeout=pane.group_timeout,
    )


def pane_of(config: RunConfig) -> PaneChoice:
    """What a pane of this configuration would be."""
    return PaneChoice(
        config.policy,
        config.num_slots,
        config.prefill,
        config.max_batched_tokens,
        config.kv_budget_tokens,
        config.group_timeout,
    )
