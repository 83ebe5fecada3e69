import pytest

from kafkapy.tools.topic_filter import TopicFilter


@pytest.mark.parametrize(
    ("pattern", "topic", "is_allowed"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("ord.*", "orders", True),
        ("a,b", "b", True),
        ("a, b", "b", True),
        ("'quoted'", "quoted", True),
        (r"a\.b", "axb", False),
    ],
)
def test_the_whole_name_must_match(pattern: str, topic: str, is_allowed: bool) -> None:
    assert TopicFilter(pattern).allows(topic, exclude_internal=False) is is_allowed


def test_internal_topics_can_be_left_out() -> None:
    everything = TopicFilter(".*")

    assert everything.allows("__consumer_offsets", exclude_internal=False)
    assert not everything.allows("__consumer_offsets", exclude_internal=True)


def test_what_is_no_expression_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        TopicFilter("t[")

    assert capsys.readouterr().err.startswith("t[ is no regular expression: ")
