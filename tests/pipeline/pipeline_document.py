"""docs/pipeline.md, for the tests that run its examples."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
SECURITY = "TLS and SASL"


def sections() -> dict[str, str]:
    """The texts by their titles."""
    parts = re.split(r"^## ", DOCUMENT.read_text(), flags=re.MULTILINE)
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def examples(*, other_than: str) -> list[str]:
    """The Python of all sections but one, in order."""
    texts = [text for title, text in sections().items() if title != other_than]
    return [code for text in texts for code in _blocks(text, "python")]


def example(section: str, language: str) -> str:
    """The only one of its kind in a section."""
    (code,) = _blocks(sections()[section], language)
    return code


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
