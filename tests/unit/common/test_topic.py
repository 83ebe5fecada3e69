import pytest

from kafkapy.common.errors import InvalidTopicError
from kafkapy.common.topic import has_collision, has_collision_chars, validate_topic_name


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "...", "__consumer_offsets", "x" * 249])
def test_legal_names(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "a b", "a/b", "a\\b", "a\n", "\u00e4", "a\0", "a:b", "\u0663"],
)
def test_illegal_names(name: str) -> None:
    with pytest.raises(InvalidTopicError):
        validate_topic_name(name)


@pytest.mark.parametrize(
    ("first", "second", "collide"),
    [("a.b", "a_b", True), ("a_b", "a_b", True), ("a.b", "a-b", False), ("ab", "a_b", False)],
)
def test_collision(first: str, second: str, collide: bool) -> None:
    assert has_collision(first, second) is collide


def test_names_without_dot_and_underscore_cannot_collide() -> None:
    assert not has_collision_chars("a-b")
    assert has_collision_chars("a.b") and has_collision_chars("a_b")
