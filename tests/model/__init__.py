"""Tests of batchviz/model: with a tiny random model where bits are compared, with the real one where words are."""

import batchviz.model  # noqa: F401  (before torch: it says how torch's threads wait)
