"""Generates the function that reads one message at one version."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kafkapy.common.protocol.source import Source

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Field, Message, Struct


class DecoderSource(Source):
    """`generated(buf, pos) -> (message, position after it)`."""

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(f"{cls.__name__} v{version} decoder")
        self._version = version
        self._flexible = version in cls.FLEXIBLE_VERSIONS
        self._message = cls
        # Fixed-size values read together: (format, target) pairs not yet emitted.
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []
        title = f"{cls.__name__} v{version}"
        # Without records a request is small, and bytes are faster to take apart than a view.
        # A header (no API of its own) stands in front of a body of any size.
        self._view = cls.API_KEY is None or _holds_records(cls)
        with self.block("def generated(buf, pos):"), self.block("try:"):
            wrapper = "memoryview" if self._view else "bytes"
            with self.block(f"if buf.__class__ is not {wrapper}:"):
                self.line(f"buf = {wrapper}(buf)")
            self.line("end = len(buf)")
            self._struct(cls, "message")
            self._flush()
            with self.block("if pos > end:"):
                self.line(f"truncated({title!r})")
            self.line("return message, pos")
        self._depth = 1
        with self.block("except DECODE_ERRORS as error:"):
            self.line(f"raise undecodable({title!r}, error) from error")

    def _struct(self, cls: type[Struct], target: str) -> None:
        """May leave a run behind; every field of `target` is set once that is flushed."""
        self.line(f"{target} = new({self.refer('Struct', cls)})")
        tagged = []
        for field in cls.FIELDS:
            present = field.present_in(self._version)
            if present and field.tag is None:
                self._field(cls, field, f"{target}.{field.slot}")
                continue
            self.line(f"{target}.{field.slot} = {self.default_expression(field)}")
            if present:
                tagged.append(field)
        if not self._flexible:
            self.line(f"{target}.unknown_tagged_fields = None")
        elif tagged:
            self._known_tags(cls, tagged, target)
        else:
            count = self.variable("tags")
            self._take("B", count)
            self._flush()
            with self.block(f"if {count}:"):
                self.line(
                    f"{target}.unknown_tagged_fields, pos = read_unknown_tags(buf, pos, {count})"
                )
            with self.block("else:"):
                self.line(f"{target}.unknown_tagged_fields = None")

    def _known_tags(self, cls: type[Struct], tagged: list[Field], target: str) -> None:
        count, unknown = self.variable("tags"), self.variable("unknown")
        tag, stop = self.variable("tag"), self.variable("stop")
        self._uvarint(count)
        self.line(f"{unknown} = None")
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, pos = uvarint(buf, pos)")
            self.line(f"{stop}, pos = uvarint(buf, pos)")
            self.line(f"{stop} += pos")
            word = "if"
            for field in tagged:
                with self.block(f"{word} {tag} == {field.tag}:"):
                    self._field(cls, field, f"{target}.{field.slot}")
                    self._flush()
                    with self.block(f"if pos != {stop}:"):
                        self.line(f"bad_tag({field.name!r})")
                word = "elif"
            with self.block("else:"):
                with self.block(f"if {unknown} is None:"):
                    self.line(f"{unknown} = {{}}")
                self.line(f"{unknown}[{tag}] = bytes(buf[pos:{stop}])")
                self.line(f"pos = {stop}")
        self.line(f"{target}.unknown_tagged_fields = {unknown}")

    def _field(self, cls: type[Struct], field: Field, target: str) -> None:
        kind = field.kind.name
        nullable = field.nullable_in(self._version)
        if field.kind.format:
            self._fixed(field.kind.format, target)
        elif kind == "struct":
            assert field.struct_name is not None
            self._struct_field(cls.struct_named(field.struct_name), target, nullable=nullable)
        else:
            compact = field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS)
            length = self._length(field, target, compact=compact, nullable=nullable)
            if nullable:
                with self.block("else:"):
                    self._sized_value(cls, field, target, length)
            else:
                self._sized_value(cls, field, target, length)

    def _struct_field(self, cls: type[Struct], target: str, *, nullable: bool) -> None:
        variable = self.variable("item")
        if not nullable:
            self._struct(cls, variable)
            self.line(f"{target} = {variable}")
            return
        marker = self.variable("marker")
        self._take("b", marker)
        self._flush()
        with self.block(f"if {marker} < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self._struct(cls, variable)
            self._flush()
            self.line(f"{target} = {variable}")

    def _length(self, field: Field, target: str, *, compact: bool, nullable: bool) -> str:
        """Reads a length or count; when nullable, ends in an `if` that stores None."""
        length = self.variable("size")
        if compact:
            self._uvarint(length)
            self.line(f"{length} -= 1")
        else:
            self._take("h" if field.kind.name == "string" else "i", length)
            self._flush()
        if nullable:
            with self.block(f"if {length} < 0:"):
                self.line(f"{target} = None")
        else:
            with self.block(f"if {length} < 0:"):
                self.line(f"bad_null({field.name!r})")
        return length

    def _sized_value(self, cls: type[Struct], field: Field, target: str, length: str) -> None:
        taken = f"buf[pos:(pos := pos + {length})]"
        match field.kind.name:
            case "string":
                if field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS):
                    with self.block(f"if {length} > 32767:"):
                        self.line(f"bad_length({field.name!r}, {length})")
                self.line(f"{target} = {self._text(taken)}")
            case "bytes":
                self.line(f"{target} = {f'bytes({taken})' if self._view else taken}")
            case "records":
                self.line(f"{target} = {taken}")
            case "array":
                self._array(cls, field, target, length)

    def _text(self, taken: str) -> str:
        return f"{taken}.tobytes().decode()" if self._view else f"{taken}.decode()"

    def _array(self, cls: type[Struct], field: Field, target: str, count: str) -> None:
        least = self._minimum_element_size(cls, field)
        with self.block(
            f"if {count} > {'end - pos' if least == 1 else f'(end - pos) // {least}'}:"
        ):
            self.line(f"bad_count({field.name!r}, {count})")
        element = field.element
        if element is not None and element.format and element.name != "uuid":
            self.line(f"{target} = list(unpack_from(f'>{{{count}}}{element.format}', buf, pos))")
            self.line(f"pos += {count} * {element.size}" if element.size > 1 else f"pos += {count}")
            return
        items = self.variable("items")
        self.line(f"{target} = {items} = []")
        with self.block(f"for _ in range({count}):"):
            item = self.variable("item")
            if field.struct_name is not None:
                self._struct(cls.struct_named(field.struct_name), item)
            else:
                self._simple_element(field, item)
            self._flush()
            self.line(f"{items}.append({item})")

    def _simple_element(self, field: Field, item: str) -> None:
        assert field.element is not None
        match field.element.name:
            case "uuid":
                self._fixed("16s", item)
            case "string":
                size = self.variable("size")
                if field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS):
                    self._uvarint(size)
                    self.line(f"{size} -= 1")
                    with self.block(f"if {size} > 32767:"):
                        self.line(f"bad_length({field.name!r}, {size})")
                else:
                    self._take("h", size)
                    self._flush()
                with self.block(f"if {size} < 0:"):
                    self.line(f"bad_null({field.name!r})")
                self.line(f"{item} = {self._text(f'buf[pos:(pos := pos + {size})]')}")
            case other:
                raise TypeError(f"{field.name}: no message of Kafka has arrays of {other}")

    def _fixed(self, format: str, target: str) -> None:
        if format == "16s":
            raw = self.variable("raw")
            self._take(format, raw)
            self._after_run.append(f"{target} = uuid_from_bytes({raw})")
        else:
            self._take(format, target)

    def _take(self, format: str, target: str) -> None:
        self._run.append((format, target))

    def _uvarint(self, target: str) -> None:
        """Most varints are one byte: that byte is read with what precedes it."""
        self._take("B", target)
        self._flush()
        with self.block(f"if {target} > 127:"):
            self.line(f"{target}, pos = uvarint(buf, pos, {target})")

    def _flush(self) -> None:
        if not self._run:
            return
        formats = "".join(format for format, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        size = struct.calcsize(">" + formats)
        if formats == "B":
            self.line(f"{targets} = buf[pos]")
        else:
            trailing = "," if len(self._run) == 1 else ""
            self.line(
                f"{targets}{trailing} = {self.struct_method(formats, 'unpack_from')}(buf, pos)"
            )
        self.line(f"pos += {size}")
        self._run.clear()
        for statement in self._after_run:
            self.line(statement)
        self._after_run.clear()

    def _minimum_element_size(self, cls: type[Struct], field: Field) -> int:
        if field.struct_name is not None:
            return max(1, self._minimum_size(cls.struct_named(field.struct_name)))
        assert field.element is not None
        return field.element.size or (1 if self._flexible else 2)

    def _minimum_size(self, cls: type[Struct]) -> int:
        """The fewest bytes that a struct can take."""
        total = 1 if self._flexible else 0
        for field in cls.FIELDS:
            if field.tag is not None or not field.present_in(self._version):
                continue
            if field.kind.format:
                total += field.kind.size
            elif field.kind.name == "struct":
                assert field.struct_name is not None
                nullable = field.nullable_in(self._version)
                total += 1 if nullable else self._minimum_size(cls.struct_named(field.struct_name))
            elif field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS):
                total += 1
            else:
                total += 2 if field.kind.name == "string" else 4
        return total


def _holds_records(cls: type[Struct]) -> bool:
    for field in cls.FIELDS:
        if field.kind.name == "records":
            return True
        if field.struct_name is not None and _holds_records(cls.struct_named(field.struct_name)):
            return True
    return False
