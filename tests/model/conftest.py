"""Models that the tests of one session share: loaded once, since loading is most of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchviz.model.half_linear import row_unit
from batchviz.model.load import LoadedModel, load_model
from batchviz.model.number_format import DTYPES, FLOAT16_WEIGHTS, FLOAT32
from batchviz.model.weights import ensure_weights
from tests.model.tiny import tiny_model


@pytest.fixture(scope="session", params=list(DTYPES))
def tiny(request: pytest.FixtureRequest) -> LoadedModel:
    """The tiny random model, in each number format."""
    if request.param == FLOAT16_WEIGHTS and row_unit() is None:
        pytest.skip("this machine keeps no weights in float16")
    return tiny_model(request.param)


@pytest.fixture(scope="session")
def tiny32() -> LoadedModel:
    return tiny_model(FLOAT32)


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The real weights: fetched once, then from the user's cache."""
    return ensure_weights()


@pytest.fixture(scope="session")
def real32(weights_folder: Path) -> LoadedModel:
    return load_model(dtype="float32", device="cpu")
