"""Models that the tests of one session share: loaded once, since loading is most of the time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from batchviz.model.load import LoadedModel, load_model
from batchviz.model.weights import ensure_weights
from tests.model.tiny import tiny_model

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@pytest.fixture(scope="session", params=list(DTYPES))
def tiny(request: pytest.FixtureRequest) -> LoadedModel:
    """The tiny random model, in each number format."""
    return tiny_model(DTYPES[request.param])


@pytest.fixture(scope="session")
def tiny32() -> LoadedModel:
    return tiny_model(torch.float32)


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The real weights: fetched once, then from the user's cache."""
    return ensure_weights()


@pytest.fixture(scope="session")
def real32(weights_folder: Path) -> LoadedModel:
    return load_model(dtype="float32", device="cpu")
