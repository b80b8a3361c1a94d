"""Load and soak: many viewers of a real server, and many runs of one process. Not part of the tests; see LOAD.md."""
