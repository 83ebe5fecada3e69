"""Generates the function that finds every error code in a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.protocol.source import Source

if TYPE_CHECKING:
    from kafkapy.common.protocol.schema import Message, Struct


# AddPartitionsToTxn has a name of its own for it.
_NAMES = ("error_code", "partition_error_code")


class ErrorCodesSource(Source):
    """`generated(message)`: the error codes of a message and of all structs in it, as a list."""

    def __init__(self, cls: type[Message]) -> None:
        super().__init__(f"{cls.__name__} error codes")
        with self.block("def generated(message):"):
            self.line("codes = []")
            self._struct(cls, "message")
            self.line("return codes")

    def _struct(self, cls: type[Struct], source: str) -> None:
        for field in cls.FIELDS:
            if field.name in _NAMES:
                self.line(f"codes.append({source}.{field.name})")
            elif field.kind.name == "array" and field.struct_name is not None:
                struct = cls.struct_named(field.struct_name)
                if _has_error_codes(struct):
                    element = self.variable("element")
                    with self.block(f"for {element} in {source}.{field.slot} or ():"):
                        self._struct(struct, element)


def _has_error_codes(cls: type[Struct]) -> bool:
    return any(
        field.name in _NAMES
        or (
            field.kind.name == "array"
            and field.struct_name is not None
            and _has_error_codes(cls.struct_named(field.struct_name))
        )
        for field in cls.FIELDS
    )
