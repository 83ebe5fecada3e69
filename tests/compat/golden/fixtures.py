"""Messages as other implementations encode them, one per line: name, version, hex, values.

The values are JSON under our field names: bytes as hex, topic ids as text, fields that the version
lacks left out.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kafkapy.common.protocol.schema import Struct

DIRECTORY = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Golden:
    client: str
    message: str
    version: int
    encoded: bytes
    values: dict[str, Any]


def load(client: str) -> list[Golden]:
    lines = (DIRECTORY / f"{client}.txt").read_text(encoding="utf-8").splitlines()
    return [_parse(client, line) for line in lines if not line.startswith("#")]


def clients() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.txt"))


def line_of(golden: Golden) -> str:
    values = json.dumps(golden.values, ensure_ascii=False, separators=(",", ":"))
    return f"{golden.message} {golden.version} {golden.encoded.hex() or '-'} {values}"


def to_values(message: Struct, version: int) -> dict[str, Any]:
    return {
        field.name: _to_plain(getattr(message, field.name), version)
        for field in message.FIELDS
        if field.present_in(version)
    }


def from_values(cls: type[Struct], values: dict[str, Any]) -> Any:
    kinds = {field.name: field for field in cls.FIELDS}
    built = {}
    for name, value in values.items():
        field = kinds[name]
        kind = field.element.name if field.element is not None else field.kind.name
        nested = None if field.struct_name is None else cls.struct_named(field.struct_name)
        if isinstance(value, list):
            built[name] = [_from_plain(item, kind, nested) for item in value]
        else:
            built[name] = _from_plain(value, kind, nested)
    return cls(**built)


def _parse(client: str, line: str) -> Golden:
    message, version, encoded, values = line.split(" ", 3)
    data = b"" if encoded == "-" else bytes.fromhex(encoded)
    return Golden(client, message, int(version), data, json.loads(values))


def _to_plain(value: Any, version: int) -> Any:
    match value:
        case Struct():
            return to_values(value, version)
        case list():
            return [_to_plain(item, version) for item in value]
        case UUID():
            return str(value)
        case bytes() | memoryview():
            return value.hex()
    return value


def _from_plain(value: Any, kind: str, nested: type[Struct] | None) -> Any:
    if value is None:
        return None
    if nested is not None:
        return from_values(nested, value)
    match kind:
        case "uuid":
            return UUID(value)
        case "bytes" | "records":
            return bytes.fromhex(value)
    return value
