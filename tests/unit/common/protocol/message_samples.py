"""Random but valid messages of every kind, and the list of all of them."""

import importlib
import pkgutil
from random import Random
from typing import Any
from uuid import UUID

from kafkapy.common.protocol import messages
from kafkapy.common.protocol.headers import RequestHeader, ResponseHeader
from kafkapy.common.protocol.schema import Field, Message, Struct

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def all_message_classes() -> list[type[Message]]:
    found: list[type[Message]] = [RequestHeader, ResponseHeader]
    for module_info in pkgutil.iter_modules(messages.__path__):
        module = importlib.import_module(f"{messages.__name__}.{module_info.name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Message) and value is not Message
        ]
    return found


def versions_of(cls: type[Message]) -> range:
    return range(cls.VERSIONS.lowest, cls.VERSIONS.highest + 1)


class Sampler:
    """Draws messages whose fields hold any values that a version can carry."""

    def __init__(
        self,
        random: Random,
        *,
        counts: tuple[int, ...] = (0, 1, 1, 2, 3),
        blobs: tuple[bytes, ...] = (b"", b"\x00", b"abc", bytes(200)),
        texts: tuple[str, ...] = ("", "t", "topic-1", "名前", "x" * 130),
        unknown_tags: bool = True,
    ) -> None:
        self._random = random
        self._counts = counts
        self._blobs = blobs
        self._texts = texts
        self._unknown_tags = unknown_tags

    def message(self, cls: type[Struct], version: int) -> Any:
        random = self._random
        values = {
            field.name: self._value(cls, field, version)
            for field in cls.FIELDS
            if field.present_in(version)
        }
        instance = cls(**values)
        flexible = version in cls.MESSAGE.FLEXIBLE_VERSIONS
        if self._unknown_tags and flexible and random.random() < 0.3:
            instance.unknown_tagged_fields = {
                random.randrange(100, 100_000): random.choice(self._blobs) for _ in range(2)
            }
        return instance

    def _value(self, cls: type[Struct], field: Field, version: int) -> Any:
        random = self._random
        if field.nullable_in(version) and random.random() < 0.25:
            return None
        if field.tag is not None and field.kind.name != "struct" and random.random() < 0.3:
            return [] if field.kind.name == "array" else field.default
        if field.kind.name == "struct":
            assert field.struct_name is not None
            return self.message(cls.struct_named(field.struct_name), version)
        if field.kind.name != "array":
            return self._simple(field.kind.name)
        count = random.choice(self._counts)
        if field.struct_name is not None:
            nested = cls.struct_named(field.struct_name)
            return [self.message(nested, version) for _ in range(count)]
        assert field.element is not None
        return [self._simple(field.element.name) for _ in range(count)]

    def _simple(self, kind: str) -> Any:
        random = self._random
        match kind:
            case "bool":
                return random.random() < 0.5
            case "uint16":
                return random.randrange(1 << 16)
            case "uint32":
                return random.randrange(1 << 32)
            case "float64":
                return random.uniform(-1e9, 1e9)
            case "uuid":
                return UUID(int=random.choice((0, 1, random.getrandbits(128))))
            case "string":
                return random.choice(self._texts)
            case "bytes":
                return random.choice(self._blobs)
            case "records":
                return memoryview(random.choice(self._blobs))
        limit = 1 << (_BITS[kind] - 1)
        return random.choice((-limit, -1, 0, 1, limit - 1, random.randrange(-limit, limit)))
