"""Every message at every version: what is written is read back, and bad bytes are only refused."""

from random import Random

import pytest

from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.schema import Message
from tests.unit.common.protocol.message_samples import Sampler, all_message_classes, versions_of

ALL = all_message_classes()


def decode_or_refuse(cls: type[Message], data: bytes | memoryview, version: int) -> None:
    """Anything but a ProtocolError propagates and fails the test."""
    try:
        cls.decode(data, version)
    except ProtocolError:
        return


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_version_round_trips(cls: type[Message]) -> None:
    sampler = Sampler(Random(cls.__name__))
    for version in versions_of(cls):
        for _ in range(6):
            message = sampler.message(cls, version)

            encoded = message.encode(version)
            decoded, position = cls.decode_from(encoded, 0, version)

            assert decoded == message
            assert position == len(encoded)
            assert decoded.encode(version) == encoded


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_truncation_at_any_byte_is_refused(cls: type[Message]) -> None:
    random = Random(cls.__name__)
    for version in {cls.VERSIONS.lowest, cls.VERSIONS.highest}:
        encoded = Sampler(random).message(cls, version).encode(version)
        cuts = range(len(encoded))

        for cut in cuts if len(cuts) <= 300 else random.sample(cuts, 300):
            with pytest.raises(ProtocolError):
                cls.decode(encoded[:cut], version)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_mutated_bytes_decode_or_are_refused(cls: type[Message]) -> None:
    random = Random(cls.__name__)
    for version in {cls.VERSIONS.lowest, cls.VERSIONS.highest}:
        encoded = Sampler(random).message(cls, version).encode(version)
        if not encoded:
            continue
        for _ in range(60):
            mutated = bytearray(encoded)
            for _ in range(random.randrange(1, 4)):
                mutated[random.randrange(len(mutated))] = random.choice((0, 0x7F, 0x80, 0xFF, 1))

            decode_or_refuse(cls, bytes(mutated), version)
            decode_or_refuse(cls, memoryview(mutated), version)
