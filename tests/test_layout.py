"""What the layout promises: sizes, one class map, nothing of one machine in the tree."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Only the class of a whole package's entry may come near the limit.
MAX_MODULE_LINES = 800
MAX_TEST_LINES = 600


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so the files of the project cannot be told from others")
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_module_is_a_dumping_ground() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("kafkapy/*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_MODULE_LINES
    }

    assert too_long == {}


def test_no_test_file_is_too_long_to_find_a_rule_in() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("tests/*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_TEST_LINES
    }

    assert too_long == {}


def test_every_test_directory_is_a_package() -> None:
    directories = {path.parent for path in tracked("tests/*.py")}

    assert [str(d) for d in sorted(directories) if not (d / "__init__.py").exists()] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in tracked("*.md"):
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", path.read_text()):
            if not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")

    assert broken == []
