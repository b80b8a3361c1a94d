"""The real model: weights, tokens, one forward pass for all slots. Only here are torch and transformers imported.

Importing `batchviz.model` or `batchviz.model.weights` is cheap; torch is loaded with `batchviz.model.load`.
"""
