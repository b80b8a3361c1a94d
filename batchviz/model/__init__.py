"""The real model: weights, tokens, one forward pass for all slots. The only package that imports torch and transformers.

Importing `batchviz.model` or `batchviz.model.weights` is cheap; torch is loaded with `batchviz.model.load`.
"""
