"""A file that a stranger names -> its bytes, or one sentence why not. And how such a file and its name are shown.

Owns: reading whole files up to a limit, names made safe. Must not know: what the bytes mean.
"""

from __future__ import annotations

import os
import stat

from batchviz.scenario import MAX_ID_CHARACTERS, ScenarioError, is_printable, shown_text


def read_given_file(path: str | os.PathLike[str], limit: int, whole: str, formats: str) -> bytes:
    """Reads a regular file of at most `limit` bytes. Raises ScenarioError.

    `whole` is what has that limit ("a scenario in YAML"); `formats` is what may be given ("YAML or JSON").
    """
    given = os.fspath(path)
    source = shown_source(given)
    try:
        status = os.stat(given)
        if stat.S_ISDIR(status.st_mode):
            raise ScenarioError(f"{source} is a folder; name a {formats} file in it")
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(f"{source} is not a regular file; save it as a {formats} file")
        if status.st_size > limit:  # said before anything is read
            raise too_large(source, status.st_size, limit, whole)
        with open(given, "rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        raise ScenarioError(f"{source} does not exist; give the path of a {formats} file") from None
    except PermissionError:
        raise ScenarioError(f"{source} may not be read by you; change its permissions or copy it") from None
    except OSError as error:
        reason = (error.strerror or "an input error").lower()
        raise ScenarioError(f"{source} cannot be read ({reason}); give the path of a {formats} file") from None
    except ScenarioError:
        raise
    except ValueError:
        raise ScenarioError(f"{source} is not a file name; give the path of a {formats} file") from None


def too_large(source: str, num_bytes: int, limit: int, whole: str) -> ScenarioError:
    size = f"{num_bytes / 1_000_000:,.1f} MB" if num_bytes >= 1_000_000 else f"{num_bytes / 1000:,.0f} kB"
    allowed = f"{limit // 1_000_000} MB" if limit >= 1_000_000 else f"{limit // 1000} kB"
    return ScenarioError(f"{source} has {size}; {whole} has at most {allowed}")


def name_from(stem: str) -> str:
    """A scenario without a name is called after its file, as far as that name can be printed."""
    name = "".join(filter(is_printable, stem)).strip()[:MAX_ID_CHARACTERS].strip()
    return name or "scenario"


def shown_source(path: str) -> str:
    """A file's name as messages show it: without quotes, and safe on a terminal."""
    return shown_text(path, limit=200)[1:-1]
