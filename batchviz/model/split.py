"""Where the time of a forward pass goes: a clock around every linear layer and around attention.

Owns: `where_time_goes`. Must not know: benchmarks, debugging. The clock's own reading is in the figures; the model is left
as it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from batchviz.model.linear import SideBySide
from batchviz.model.llama import PlainLlama


def linear_layers(network: PlainLlama) -> list[SideBySide]:
    return [module for module in network.modules() if isinstance(module, SideBySide)]


@contextmanager
def where_time_goes(network: PlainLlama, clock: Callable[[], float]) -> Iterator[dict[str, float]]:
    """Seconds spent in linear layers and in attention while the block runs, added up."""
    spent = {"linear": 0.0, "attention": 0.0}
    plain_attend = network.attend

    def begin(*_: Any) -> None:
        spent["linear"] -= clock()

    def end(*_: Any) -> None:
        spent["linear"] += clock()

    def attend(*step: Any) -> torch.Tensor:
        started_s = clock()
        found = plain_attend(*step)
        spent["attention"] += clock() - started_s
        return found

    layers = linear_layers(network)
    hooks = [layer.register_forward_pre_hook(begin) for layer in layers]
    hooks += [layer.register_forward_hook(end) for layer in layers]
    network.attend = attend
    try:
        yield spent
    finally:
        network.attend = plain_attend
        for hook in hooks:
            hook.remove()
