"""One line in the server's log for every live run that ends. Never a word of a prompt, nor who asked.

Owns: the line, the logger, where it goes. Must not know: queues, pages. A viewer is named by a short hash of a random key.
"""

from __future__ import annotations

import hashlib
import logging
import sys

from batchviz.jobs import Job

LOGGER = "batchviz"


def log_ended(job: Job, now_s: float) -> None:
    """Says how a job went. Its message stays out: it may quote what somebody wrote."""
    began_s = job.began_s if job.headers else now_s
    logging.getLogger(f"{LOGGER}.runs").info(
        "live run %d viewer=%s place=%d waited=%.1fs ran=%.1fs steps=%d state=%s",
        job.id,
        ",".join(map(anonymous, job.looked_s or [job.viewer])),
        job.place_at_first,
        began_s - job.submitted_s,
        now_s - began_s,
        sum(map(len, job.steps)),
        job.state.value,
    )


def anonymous(viewer: str) -> str:
    """The same for the same viewer, and nothing that leads back to the key."""
    return hashlib.sha256(viewer.encode()).hexdigest()[:8] if viewer else "nobody"


def log_to_stderr() -> None:
    """Lets the server's stderr have the lines, each with its time. Asked twice, it is done once."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
