"""The examples of docs/testing.md do what the page says."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def test_every_example_passes(pytester: pytest.Pytester) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for number, example in enumerate(examples):
        pytester.makepyfile(**{f"test_example_{number}": example})

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=100)

    tests = sum(len(re.findall(r"^ *def test_", example, re.MULTILINE)) for example in examples)
    assert len(examples) >= 7
    result.assert_outcomes(passed=tests)
