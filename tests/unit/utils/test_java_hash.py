import pytest

from kafkapy.utils.java_hash import java_partition_for, java_string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("my-consumer-group", 1513705513),
        ("polygenelubricants", -(1 << 31)),
        ("é", 233),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_hash_is_that_of_java(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [("", 0), ("a", 97 % 50), ("my-group", 12), ("polygenelubricants", 0)],
)
def test_a_key_belongs_to_the_partition_that_kafka_gives_it(key: str, expected: int) -> None:
    assert java_partition_for(key, 50) == expected
