"""Small scripts in front of programs that Spark starts, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def launcher_script(name: str, script: str, environment: Mapping[str, str]) -> Path:
    """`…/bin/name` with this text, written if it is not there: the text is part of the path."""
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkapy"
    digest = hashlib.sha256(script.encode()).hexdigest()[:16]
    path = cache / f"{name}-{digest}" / "bin" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place: another process never starts half a script.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as written:
            written.write(script)
        os.chmod(written.name, 0o755)
        os.rename(written.name, path)
    return path
