"""What the generators of constructors, decoders and encoders share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Field, Struct


class Source:
    """Python text under construction, with the objects it refers to by name. Not thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[str] = []
        self._depth = 0
        self._variables = 0
        self._objects: dict[str, Any] = {}

    def compile(self, runtime: dict[str, Any]) -> Callable[..., Any]:
        """The function named `generated` in the text."""
        namespace = {**runtime, **self._objects}
        exec(compile(self.text(), f"<{self._name}>", "exec"), namespace)
        function: Callable[..., Any] = namespace["generated"]
        return function

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, hint: str) -> str:
        """A name not used before, so that nested loops do not disturb each other."""
        self._variables += 1
        return f"{hint}{self._variables}"

    def refer(self, prefix: str, value: Any) -> str:
        """The name under which the text sees an object."""
        for name, known in self._objects.items():
            if known is value:
                return name
        name = f"{prefix}{len(self._objects)}"
        self._objects[name] = value
        return name

    def struct_method(self, formats: str, method: str) -> str:
        """The bound method of a precompiled big-endian Struct."""
        name = f"{method}_{formats.replace('?', 'o')}"
        if name not in self._objects:
            self._objects[name] = getattr(struct.Struct(">" + formats), method)
        return name

    def default_expression(self, field: Field) -> str:
        """What the field's slot holds by default."""
        if field.made_on_demand:
            return "None"
        if field.kind.name == "array":
            return "None" if field.default is None else "[]"
        if isinstance(field.default, UUID):
            return "ZERO_UUID"
        return repr(field.default)

    def differs_from_default(self, cls: type[Struct], field: Field, value: str) -> str:
        """An expression that is true when the slot's value is not what it is by default."""
        if field.default is None:
            return f"{value} is not None"
        match field.kind.name:
            case "array":
                return f"({value} is None or len({value}) > 0)"
            case "uuid":
                return f"({value} is not ZERO_UUID and {value} != ZERO_UUID)"
            case "struct":
                assert field.struct_name is not None
                nested_cls = cls.struct_named(field.struct_name)
                nested = self.variable("nested")
                terms = [f"{nested}.unknown_tagged_fields"]
                terms += [
                    self.differs_from_default(nested_cls, inner, f"{nested}.{inner.slot}")
                    for inner in nested_cls.FIELDS
                ]
                return f"(({nested} := {value}) is not None and ({' or '.join(terms)}))"
        return f"{value} != {self.default_expression(field)}"
