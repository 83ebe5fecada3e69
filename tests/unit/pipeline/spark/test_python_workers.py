import json
import subprocess
import sys
from pathlib import Path

from kafkapy.pipeline.spark.python_workers import worker_python

_SAY = (
    "import json, os, sys; print(json.dumps([sys.executable, os.environ['PYTHONPATH'], sys.argv]))"
)


def test_sparks_archives_are_left_out_and_all_else_is_kept(tmp_path: Path) -> None:
    python = worker_python({"XDG_CACHE_HOME": str(tmp_path)})
    spark = "/venv/lib/pyspark"
    path = ":".join(
        (
            f"{spark}/python/lib/pyspark.zip",
            "/my own",
            f"{spark}/python/lib/py4j-0.10.9-src.zip",
            f"{spark}/jars/spark-core_2.13-4.3.0.jar",
            "/other/pyspark.zip",
            "/other/modules.jar",
        )
    )

    said = subprocess.run(
        [python, "-c", _SAY, "one two"],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(said.stdout) == [
        sys.executable,
        "/my own:/other/pyspark.zip:/other/modules.jar",
        ["-c", "one two"],
    ]


def test_without_a_path_it_is_just_this_python(tmp_path: Path) -> None:
    python = worker_python({"XDG_CACHE_HOME": str(tmp_path)})

    said = subprocess.run([python, "-c", "import pyspark"], env={}, capture_output=True, text=True)

    assert (said.returncode, said.stderr) == (0, "")
