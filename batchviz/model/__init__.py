"""The real model: weights, tokens, one forward pass for all slots. Only here are torch and transformers imported.

Importing `batchviz.model` or `batchviz.model.weights` is cheap; torch is loaded with `batchviz.model.load`.

Torch's threads wait for each other some hundred times a step, and by default they wait by spinning. Beside one other busy
process on two cores a step of SmolLM2 then took 2.4 s instead of 0.13 s (2026-11-29, torch 2.13.0), so unless the user
says otherwise, they sleep. OpenMP reads the variable when torch is loaded, which is why it is set before.

A process that has the machine to itself may let them spin: a step is then 10 to 25 % shorter.
"""

import os

SPINS = "100000"  # how often a thread looks before it sleeps: longer than anything in a step takes

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def let_threads_spin() -> None:
    """For a benchmark on an idle machine. Without effect once torch is loaded, or where the user chose otherwise."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
