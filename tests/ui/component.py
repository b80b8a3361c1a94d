"""What the one component of a page was sent."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest


def data_of(page: AppTest) -> dict[str, Any]:
    """The data of the player, or of the lesson; there is exactly one."""
    (component,) = page.get("bidi_component")
    data: dict[str, Any] = json.loads(component.proto.json)
    return data
