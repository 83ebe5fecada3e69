import pytest

from kafkapy.utils.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\n", {"a": "1", "b": "2"}),
        ("a:1\nb 2", {"a": "1", "b": "2"}),
        ("# comment\n! comment\n\n  a=1", {"a": "1"}),
        ("listeners=A://h:1,\\\n    B://h:2", {"listeners": "A://h:1,B://h:2"}),
        ("a=1\na=2", {"a": "2"}),
        ("empty=\nalone", {"empty": "", "alone": ""}),
        ("url=http://x:9092", {"url": "http://x:9092"}),
        ("tab=a\\tb\\u0041\\=c", {"tab": "a\tbA=c"}),
        ("k\\=ey=v", {"k=ey": "v"}),
        ("path=C:\\\\dir", {"path": "C:\\dir"}),
        ("trailing=space   ", {"trailing": "space"}),
    ],
)
def test_property_files_are_read(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a=: \nb=1", {"a": ": ", "b": "1"}), ("a=\\ ", {"a": " "}), ("a= \nb ", {"a": "", "b": ""})],
)
def test_blanks_at_the_end_are_kept_if_asked(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text, keep_blanks=True) == expected
