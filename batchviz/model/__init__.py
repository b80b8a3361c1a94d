"""The real model: weights, tokens, one forward pass for all slots. Only here are torch and transformers imported.

Importing `batchviz.model` or `batchviz.model.weights` is cheap; torch is loaded with `batchviz.model.load`.

Torch's threads wait for each other some hundred times a step, and by default they wait by spinning. Beside one other busy
process on two cores a step of SmolLM2 then took 2.4 s instead of 0.13 s (2026-11-29, torch 2.13.0), so unless the user
says otherwise, they sleep. OpenMP reads the variable when torch is loaded, which is why it is set before.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
