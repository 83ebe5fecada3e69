"""The examples of docs/tools.md run as they stand, each section by itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.brokers import Broker
from tests.compat.conftest import broker  # noqa: F401 - one with nothing else in it
from tests.helpers.server_process import ROOT

_DOCUMENT = (ROOT / "docs" / "tools.md").read_text()
_ANYTHING = "..."


def _sections() -> Iterator[tuple[str, str]]:
    """Titles and examples."""
    for section in re.split(r"^## ", _DOCUMENT, flags=re.MULTILINE)[1:]:
        examples = "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL))
        if examples:
            yield section.splitlines()[0], examples


_SECTIONS = dict(_sections())


@pytest.mark.parametrize("examples", list(_SECTIONS.values()), ids=list(_SECTIONS))
def test_the_examples_of_a_section_work(
    broker: Broker,  # noqa: F811
    tmp_path: Path,
    examples: str,
) -> None:
    environment = {
        **os.environ,
        "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "LOG_DIR": str(broker.log_dir),
    }
    for example in re.split(r"^\$ ", examples, flags=re.MULTILINE)[1:]:
        command, _, expected = example.partition("\n")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.replace("localhost:9092", broker.bootstrap)],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env=environment,
        )
        pattern = ".*?".join(re.escape(part) for part in expected.split(_ANYTHING))
        assert re.fullmatch(pattern, done.stdout), f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_command_has_a_section() -> None:
    titles = re.findall(r"^## (.*)$", _DOCUMENT, flags=re.MULTILINE)
    launchers = {path.name for path in (ROOT / "bin").glob("kafka-*")}

    undocumented = launchers - set(titles)

    assert undocumented == {"kafka-completion", "kafka-server-start", "kafka-server-stop"}
