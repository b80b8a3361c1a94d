"""A folder that looks like the converted weights, without the megabytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def write_manifest(folder: Path, content: bytes) -> None:
    """A true manifest of weights with this content."""
    from batchviz.model import weights  # loads torch

    manifest = {
        "schema": weights.MANIFEST_SCHEMA,
        "wheel_sha256": weights.WHEEL_SHA256,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (folder / weights.MANIFEST_FILE).write_text(json.dumps(manifest))
