"""Which Python runs Spark's workers on the driver's own machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkapy.pipeline.spark.launcher_script import launcher_script


def worker_python(environment: Mapping[str, str]) -> Path:
    """This interpreter, and the pyspark that is installed with it.

    Spark puts a pyspark of its own before it, a zip without compiled modules: each of the many
    processes that a query starts would compile them anew, a second of CPU time every time. And a
    jar without any: whoever looks for an installed distribution, as crc32c does when it is
    imported, would read the names of its thousands of classes first, half a second.
    """
    script = f"""#!/bin/sh
kept=
set -f
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */pyspark/python/lib/*.zip | */pyspark/jars/*.jar) ;;
        *) kept=$kept${{kept:+:}}$entry ;;
    esac
done
unset IFS
export PYTHONPATH="$kept"
exec {shlex.quote(sys.executable)} "$@"
"""
    return launcher_script("python", script, environment)
