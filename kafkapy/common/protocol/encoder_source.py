"""Generates the function that writes one message at one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.protocol.source import Source

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Field, Message, Struct


class EncoderSource(Source):
    """`generated(message, out, parts)`; `out` is the bytearray to go on with."""

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(f"{cls.__name__} v{version} encoder")
        self._version = version
        self._flexible = version in cls.FLEXIBLE_VERSIONS
        self._message = cls
        # Fixed-size values written together: (format, expression) pairs not yet emitted.
        self._run: list[tuple[str, str]] = []
        with self.block("def generated(message, out, parts):"), self.block("try:"):
            self._struct(cls, "message")
            self._flush()
            self.line("parts.append(out)")
        self._depth = 1
        with self.block("except ENCODE_ERRORS as error:"):
            title = f"{cls.__name__} v{version}"
            self.line(f"raise unencodable({title!r}, error) from error")

    def _struct(self, cls: type[Struct], source: str) -> None:
        tagged = []
        for field in cls.FIELDS:
            value = f"{source}.{field.slot}"
            if not field.present_in(self._version):
                self._absent(cls, field, value)
            elif field.tag is None:
                self._field(cls, field, value)
            else:
                tagged.append(field)
        if self._flexible:
            self._tags(cls, tagged, source)
        else:
            with self.block(f"if {source}.unknown_tagged_fields:"):
                self.line(f"unsupported('unknown_tagged_fields', {self._version})")

    def _absent(self, cls: type[Struct], field: Field, value: str) -> None:
        if not field.ignorable:
            with self.block(f"if {self.differs_from_default(cls, field, value)}:"):
                self.line(f"unsupported({field.name!r}, {self._version})")

    def _tags(self, cls: type[Struct], tagged: list[Field], source: str) -> None:
        """Writes "no tags" with what precedes it, and takes that back when there are some."""
        tags = f"{source}.unknown_tagged_fields"
        if tagged:
            self._flush()
            self.line(f"{(variable := self.variable('tags'))} = {tags}")
            tags = variable
            for field in tagged:
                value = f"{source}.{field.slot}"
                with self.block(f"if {self.differs_from_default(cls, field, value)}:"):
                    outer = self.variable("outer")
                    self.line(f"{outer} = out")
                    self.line("out = bytearray()")
                    self._field(cls, field, value)
                    self._flush()
                    self.line(f"{tags} = {{**({tags} or {{}}), {field.tag}: out}}")
                    self.line(f"out = {outer}")
            with self.block(f"if {tags}:"):
                self.line(f"write_tags(out, {tags})")
            with self.block("else:"):
                self.line("out.append(0)")
            return
        self._run.append(("x", ""))
        self._flush()
        with self.block(f"if {tags}:"):
            self.line("out.pop()")
            self.line(f"write_tags(out, {tags})")

    def _field(self, cls: type[Struct], field: Field, value: str) -> None:
        nullable = field.nullable_in(self._version)
        compact = field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS)
        if field.kind.format:
            self._fixed(field.kind.format, value)
            return
        if field.kind.name == "struct":
            assert field.struct_name is not None
            if field.made_on_demand and field.tag is None:
                value = f"{value.rpartition('.')[0]}.{field.name}"
            self._struct_field(cls.struct_named(field.struct_name), value, nullable=nullable)
            return
        variable, size = self.variable("value"), self.variable("size")
        self.line(f"{variable} = {value}")
        sized = {
            "string": (f"{variable} = {variable}.encode()", f"{size} = len({variable})"),
            "bytes": (f"{size} = len({variable})",),
            "array": (f"{size} = len({variable})",),
            "records": (
                f"{size} = len({variable}) if {variable}.__class__ in BYTES_LIKE"
                f" else {variable}.size_in_bytes",
            ),
        }[field.kind.name]
        if nullable:
            with self.block(f"if {variable} is None:"):
                self.line(f"{size} = -1")
            with self.block("else:"):
                for statement in sized:
                    self.line(statement)
        else:
            for statement in sized:
                self.line(statement)
        self._length(field.name, field.kind.name, size, compact=compact)
        match field.kind.name:
            case "string" | "bytes":
                if nullable:
                    with self.block(f"if {size} > 0:"):
                        self.line(f"out += {variable}")
                else:
                    self.line(f"out += {variable}")
            case "records":
                with self.block(f"if {size} > 0:"):
                    self.line(f"out = write_records(out, parts, {variable}, {size})")
            case "array":
                if nullable:
                    with self.block(f"if {size} > 0:"):
                        self._elements(cls, field, variable, size)
                else:
                    self._elements(cls, field, variable, size)

    def _struct_field(self, cls: type[Struct], value: str, *, nullable: bool) -> None:
        variable = self.variable("item")
        self.line(f"{variable} = {value}")
        if not nullable:
            self._struct(cls, variable)
            return
        self._flush()
        with self.block(f"if {variable} is None:"):
            self.line("out.append(255)")
        with self.block("else:"):
            self._run.append(("b", "1"))
            self._struct(cls, variable)
            self._flush()

    def _elements(self, cls: type[Struct], field: Field, items: str, count: str) -> None:
        element = field.element
        if element is not None and element.format and element.name != "uuid":
            self.line(f"out += pack(f'>{{{count}}}{element.format}', *{items})")
            return
        item = self.variable("item")
        with self.block(f"for {item} in {items}:"):
            if field.struct_name is not None:
                self._struct(cls.struct_named(field.struct_name), item)
            elif element is not None and element.name == "uuid":
                self._fixed("16s", item)
            elif element is not None and element.name == "string":
                compact = field.compact_in(self._version, self._message.FLEXIBLE_VERSIONS)
                size = self.variable("size")
                self.line(f"{item} = {item}.encode()")
                self.line(f"{size} = len({item})")
                self._length(field.name, "string", size, compact=compact)
                self.line(f"out += {item}")
            else:
                raise TypeError(f"{field.name}: no message of Kafka has arrays of {element}")
            self._flush()

    def _length(self, name: str, kind: str, size: str, *, compact: bool) -> None:
        """Writes a length with the fixed-size values before it; the run is empty afterwards."""
        if not compact:
            self._run.append(("h" if kind == "string" else "i", size))
            self._flush()
            return
        # Most compact lengths are one byte; the check of long strings rides on the rare branch.
        run = self._run
        self._run = [*run, ("B", f"{size} + 1")]
        with self.block(f"if {size} < 127:"):
            self._flush()
        with self.block("else:"):
            self._run = run
            self._flush()
            if kind == "string":
                with self.block(f"if {size} > 32767:"):
                    self.line(f"bad_length({name!r}, {size})")
            self.line(f"write_uvarint(out, {size} + 1)")

    def _fixed(self, format: str, value: str) -> None:
        self._run.append((format, f"{value}.int.to_bytes(16)" if format == "16s" else value))

    def _flush(self) -> None:
        if not self._run:
            return
        formats = "".join(format for format, _ in self._run)
        values = ", ".join(value for _, value in self._run if value)
        if formats == "B":
            self.line(f"out.append({values})")
        elif formats == "x":
            self.line("out.append(0)")
        else:
            self.line(f"out += {self.struct_method(formats, 'pack')}({values})")
        self._run.clear()
