"""Traces in other formats: each file here turns a trace into one format and knows nothing of the others; formats.py
lists them."""
