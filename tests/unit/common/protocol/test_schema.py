from __future__ import annotations

from uuid import UUID

import pytest

from kafkapy.common.errors import UnsupportedVersionError
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)
from kafkapy.common.types import ZERO_UUID


class Sample(Message, versions="0-3", flexible="2+"):
    class Node(Struct):
        node_id: int = int32("0+", default=-1)
        rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)

    class Cursor(Struct):
        position: int = int64("0+")

    name: str = string("0+")
    nodes: list[Node] = array("Node", "0+")
    numbers: list[int] | None = array(int16, "0+", nullable="1+")
    strict: bool = bool_("1+", default=True)
    hint: str = string("1+", ignorable=True)
    cursor: Cursor | None = struct("Cursor", "2+", nullable="2+", default=None)
    topic_id: UUID = uuid("2+", tag=0)
    leader: Node = struct("Node", "2+", tag=1)
    level: int = int8("3+", tag=5)


def test_fields_not_given_have_their_defaults() -> None:
    message = Sample()

    assert (message.name, message.nodes, message.numbers, message.strict) == ("", [], [], True)
    assert message.cursor is None
    assert message.topic_id is ZERO_UUID
    assert message.leader == Sample.Node(node_id=-1)
    assert message.unknown_tagged_fields is None


def test_lists_and_structs_are_made_anew_for_every_instance() -> None:
    first, second = Sample(), Sample()

    first.nodes.append(Sample.Node())
    first.leader.node_id = 7

    assert second.nodes == []
    assert second.leader.node_id == -1
    assert first.leader.node_id == 7


def test_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="nmae"):
        Sample(nmae="x")  # type: ignore[call-arg]


def test_unknown_attribute_is_refused() -> None:
    message = Sample()

    with pytest.raises(AttributeError):
        message.nmae = "x"  # type: ignore[attr-defined]


def test_equality_is_by_value_and_class() -> None:
    assert Sample(name="a") == Sample(name="a")
    assert Sample(name="a") != Sample(name="b")
    assert Sample(unknown_tagged_fields={9: b"x"}) != Sample()
    assert Sample.Node() != Sample.Cursor()


def test_repr_names_every_field() -> None:
    assert repr(Sample.Node(node_id=3)) == "Sample.Node(node_id=3, rack=None)"
    assert "unknown_tagged_fields={9: b'x'}" in repr(Sample.Node(unknown_tagged_fields={9: b"x"}))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, "0001 61 00000001 00000005 00000002 0001 0002"),
        (1, "0001 61 00000001 00000005 ffff 00000002 0001 0002 01 0001 68"),
        (2, "02 61 02 00000005 00 00 03 0001 0002 01 02 68 ff 00"),
    ],
)
def test_wire_form_of_each_version(version: int, expected: str) -> None:
    message = Sample(name="a", nodes=[Sample.Node(node_id=5)], numbers=[1, 2], hint="h")

    assert message.encode(version) == bytes.fromhex(expected)


def test_present_nullable_struct_follows_a_marker() -> None:
    message = Sample(cursor=Sample.Cursor(position=1))

    assert message.encode(2) == bytes.fromhex("01 01 01 01 01 01 0000000000000001 00 00")


def test_tagged_fields_are_written_in_order_of_their_tags() -> None:
    message = Sample(
        leader=Sample.Node(node_id=2), level=4, unknown_tagged_fields={9: b"zz", 3: b"y"}
    )

    encoded = message.encode(3)

    tags = "04  01 06 00000002 00 00  03 01 79  05 01 04  09 02 7a7a"
    assert encoded == bytes.fromhex("01 01 01 01 01 ff" + tags)
    assert Sample.decode(encoded, 3) == message


def test_tagged_fields_of_default_value_are_not_written() -> None:
    message = Sample(leader=Sample.Node(), topic_id=UUID(int=0))

    assert message.encode(3) == Sample().encode(3)


def test_field_that_the_version_lacks_takes_its_default_when_read() -> None:
    decoded = Sample.decode(Sample(name="a").encode(0), 0)

    assert decoded.strict is True
    assert decoded.cursor is None
    assert decoded.leader == Sample.Node()


def test_ignorable_field_is_dropped_where_the_version_lacks_it() -> None:
    message = Sample(hint="h", nodes=[Sample.Node(rack="r")])

    assert Sample.decode(message.encode(0), 0) == Sample(nodes=[Sample.Node()])


@pytest.mark.parametrize(
    "message",
    [
        Sample(strict=False),
        Sample(cursor=Sample.Cursor()),
        Sample(topic_id=UUID(int=5)),
        Sample(leader=Sample.Node(node_id=1)),
        Sample(unknown_tagged_fields={9: b""}),
        Sample(nodes=[Sample.Node(unknown_tagged_fields={9: b""})]),
    ],
    ids=["bool", "struct", "uuid", "tagged struct", "unknown tag", "nested unknown tag"],
)
def test_other_fields_that_the_version_lacks_must_have_their_default(message: Sample) -> None:
    with pytest.raises(UnsupportedVersionError):
        message.encode(0)


@pytest.mark.parametrize("version", [-1, 4])
def test_version_outside_the_declaration_is_unsupported(version: int) -> None:
    with pytest.raises(UnsupportedVersionError):
        Sample().encode(version)
    with pytest.raises(UnsupportedVersionError):
        Sample.decode(b"", version)


@pytest.mark.parametrize(
    "message",
    [
        Sample(name=None),  # type: ignore[arg-type]
        Sample(numbers=None),
        Sample(numbers=[1 << 15]),
        Sample(name="x" * 32768),
        Sample(name="\ud800"),
    ],
    ids=["null", "null list", "out of range", "long text", "lone surrogate"],
)
def test_value_that_cannot_be_expressed_is_a_protocol_error(message: Sample) -> None:
    with pytest.raises(ProtocolError):
        message.encode(0)


def test_longest_string_is_accepted_in_both_forms() -> None:
    message = Sample(name="x" * 32767)

    assert Sample.decode(message.encode(0), 0) == message
    assert Sample.decode(message.encode(2), 2) == message
    with pytest.raises(ProtocolError):
        Sample(name="x" * 32768).encode(2)


def test_declaration_is_readable_from_the_class() -> None:
    assert str(Sample.VERSIONS) == "0-3"
    assert str(Sample.FLEXIBLE_VERSIONS) == "2+"
    assert str(Sample.DEPRECATED_VERSIONS) == "none"
    assert [field.name for field in Sample.Node.FIELDS] == ["node_id", "rack"]
