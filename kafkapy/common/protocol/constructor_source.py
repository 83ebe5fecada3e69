"""Generates the `__init__` of a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.protocol.source import Source

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Struct


class ConstructorSource(Source):
    """Keyword-only; a list that is not given is made anew for every instance."""

    def __init__(self, cls: type[Struct]) -> None:
        super().__init__(f"{cls.__qualname__} constructor")
        fresh = self.refer("FRESH", object())
        parameters = ["self", "*"]
        statements = []
        for field in cls.FIELDS:
            default, value = self.default_expression(field), field.name
            if default == "[]":
                default, value = fresh, f"[] if {field.name} is {fresh} else {field.name}"
            parameters.append(f"{field.name}={default}")
            statements.append(f"self.{field.slot} = {value}")
        parameters.append("unknown_tagged_fields=None")
        with self.block(f"def generated({', '.join(parameters)}):"):
            for statement in statements:
                self.line(statement)
            self.line("self.unknown_tagged_fields = unknown_tagged_fields")
