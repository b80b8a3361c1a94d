"""Tests of batchviz/model: with a tiny random model where bits are compared, with the real one where words are."""
