"""The language in which Kafka's messages are declared.

A message is a class, its fields are class attributes made by the functions below, its nested
structs are nested classes. Instances are slotted, mutable, compared by value and built by keyword:

    class HeartbeatRequest(Message, api_key=ApiKeys.HEARTBEAT, versions="0-4", flexible="4+"):
        group_id: str = string("0+")
        generation_id: int = int32("0+")

Version ranges are texts as Kafka writes them: "3", "0-5", "4+" or "none". Nothing is generated
when a class is created: constructors and codecs are compiled when first used, because a process
imports many declarations and uses few of their versions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, dataclass_transform

from kafkapy.common.errors import UnsupportedVersionError
from kafkapy.common.protocol.codec import (
    Decoder,
    Encoder,
    Part,
    compile_constructor,
    compile_decoder,
    compile_encoder,
    compile_error_codes,
)
from kafkapy.common.protocol.versions import NO_VERSIONS, Versions
from kafkapy.common.types import ZERO_UUID

if TYPE_CHECKING:
    from kafkapy.common.protocol.api_keys import ApiKeys

# Stands for "a new empty list" or "a new struct", which no single object may be.
FRESH: Final = object()
_KIND_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class Kind:
    """A wire type; calling it declares a field of that type. Immutable.

    Ports: org.apache.kafka.message.FieldType
    """

    name: str
    default: Any
    format: str = ""  # struct code of a fixed-size type, else empty
    size: int = 0  # bytes of a fixed-size type

    def __call__(
        self,
        versions: str,
        *,
        nullable: str = "none",
        default: Any = _KIND_DEFAULT,
        tag: int | None = None,
        ignorable: bool = False,
        flexible: str | None = None,
    ) -> Any:
        """`flexible` overrides the versions of the message in which lengths are compact."""
        return Field(
            self,
            versions,
            nullable=nullable,
            default=self.default if default is _KIND_DEFAULT else default,
            tag=tag,
            ignorable=ignorable,
            flexible=flexible,
        )


class Field:
    """One declared field. Immutable once its class exists.

    Ports: org.apache.kafka.message.FieldSpec
    """

    __slots__ = (
        "default",
        "element",
        "flexible",
        "ignorable",
        "kind",
        "name",
        "nullable",
        "slot",
        "struct_name",
        "tag",
        "versions",
    )

    def __init__(
        self,
        kind: Kind,
        versions: str,
        *,
        nullable: str,
        default: Any,
        tag: int | None,
        ignorable: bool,
        flexible: str | None = None,
        element: Kind | None = None,
        struct_name: str | None = None,
    ) -> None:
        self.name = ""  # set when the owning class is created, as is the slot
        self.slot = ""  # the attribute that holds the value
        self.kind = kind
        self.versions = versions
        self.nullable = nullable
        self.default = default
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = flexible
        self.element = element  # of an array of a simple kind
        self.struct_name = struct_name  # of a struct or an array of structs

    @property
    def made_on_demand(self) -> bool:
        """Structs are: most messages leave most of them at their default."""
        return self.kind.name == "struct" and self.default is FRESH

    def present_in(self, version: int) -> bool:
        return version in Versions.parse(self.versions)

    def nullable_in(self, version: int) -> bool:
        return version in Versions.parse(self.nullable)

    def compact_in(self, version: int, message_flexible: Versions) -> bool:
        """Whether lengths are varints in this version."""
        flexible = message_flexible if self.flexible is None else Versions.parse(self.flexible)
        return version in flexible


int8 = Kind("int8", 0, "b", 1)
int16 = Kind("int16", 0, "h", 2)
uint16 = Kind("uint16", 0, "H", 2)
int32 = Kind("int32", 0, "i", 4)
uint32 = Kind("uint32", 0, "I", 4)
int64 = Kind("int64", 0, "q", 8)
float64 = Kind("float64", 0.0, "d", 8)
bool_ = Kind("bool", False, "?", 1)
uuid = Kind("uuid", ZERO_UUID, "16s", 16)
string = Kind("string", "")
bytes_ = Kind("bytes", b"")
records = Kind("records", None)
_ARRAY = Kind("array", FRESH)
_STRUCT = Kind("struct", FRESH)


def array(
    element: Kind | str,
    versions: str,
    *,
    nullable: str = "none",
    default: Any = FRESH,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declares a list of a simple kind, or of the nested struct of that name."""
    return Field(
        _ARRAY,
        versions,
        nullable=nullable,
        default=default,
        tag=tag,
        ignorable=ignorable,
        element=None if isinstance(element, str) else element,
        struct_name=element if isinstance(element, str) else None,
    )


def struct(
    name: str,
    versions: str,
    *,
    nullable: str = "none",
    default: Any = FRESH,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declares a field that holds the nested struct of that name."""
    return Field(
        _STRUCT,
        versions,
        nullable=nullable,
        default=default,
        tag=tag,
        ignorable=ignorable,
        struct_name=name,
    )


class _OnDemand:
    """A struct field whose slot is None until it is read or set, then its own fresh struct."""

    __slots__ = ("_field",)

    def __init__(self, field: Field) -> None:
        self._field = field

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self._field.slot)
        if value is None:
            assert self._field.struct_name is not None
            value = owner.struct_named(self._field.struct_name)()
            setattr(instance, self._field.slot, value)
        return value

    def __set__(self, instance: Struct, value: Struct) -> None:
        setattr(instance, self._field.slot, value)


@dataclass_transform(kw_only_default=True, eq_default=False)
class StructMeta(type):
    """Turns the declared fields into slots."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> StructMeta:
        fields = []
        for key, value in namespace.items():
            if isinstance(value, Field):
                value.name = key
                fields.append(value)
        for field in fields:
            field.slot = f"_{field.name}" if field.made_on_demand else field.name
            if field.made_on_demand:
                namespace[field.name] = _OnDemand(field)
            else:
                del namespace[field.name]
        namespace.setdefault("__slots__", tuple(field.slot for field in fields))
        namespace["FIELDS"] = tuple(fields)
        return super().__new__(mcs, name, bases, namespace, **options)


class Struct(metaclass=StructMeta):
    """A group of fields inside a message. Not thread-safe.

    `unknown_tagged_fields` keeps what a newer peer sent, so that it is passed on unchanged.

    Ports: org.apache.kafka.common.protocol.Message
    """

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[Field, ...]]
    # The message whose nested classes the struct names of FIELDS refer to.
    MESSAGE: ClassVar[type[Message]]

    if TYPE_CHECKING:
        unknown_tagged_fields: dict[int, bytes] | None = None

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        # Replaces this method for the class; two threads that meet here install equal functions.
        constructor = compile_constructor(cls)
        cls.__init__ = constructor  # type: ignore[method-assign]
        constructor(self, **values)

    @classmethod
    def struct_named(cls, name: str) -> type[Struct]:
        found: type[Struct] = cls.MESSAGE.__dict__[name]
        return found

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        for field in self.FIELDS:
            if getattr(self, field.name) != getattr(other, field.name):
                return False
        # No unknown field and an empty set of them mean the same.
        return (self.unknown_tagged_fields or None) == (other.unknown_tagged_fields or None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = [f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS]
        if self.unknown_tagged_fields:
            values.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__qualname__}({', '.join(values)})"


class Message(Struct):
    """A request, a response, a header or a stored record body. Not thread-safe.

    Codecs are compiled per version on first use and kept on the class; threads that meet there
    compile equal functions, and either may stay.

    Ports: org.apache.kafka.common.protocol.ApiMessage
    """

    __slots__ = ()

    API_KEY: ClassVar[ApiKeys | None] = None
    VERSIONS: ClassVar[Versions] = NO_VERSIONS
    FLEXIBLE_VERSIONS: ClassVar[Versions] = NO_VERSIONS
    DEPRECATED_VERSIONS: ClassVar[Versions] = NO_VERSIONS
    _decoders: ClassVar[dict[int, Decoder[Any]]] = {}
    _encoders: ClassVar[dict[int, Encoder]] = {}
    _error_codes: ClassVar[list[Callable[[Any], list[int]]]] = []

    def __init_subclass__(
        cls,
        *,
        api_key: ApiKeys | None = None,
        versions: str,
        flexible: str,
        deprecated: str = "none",
    ) -> None:
        cls.MESSAGE = cls
        cls.API_KEY = api_key
        cls.VERSIONS = Versions.parse(versions)
        cls.FLEXIBLE_VERSIONS = Versions.parse(flexible)
        cls.DEPRECATED_VERSIONS = Versions.parse(deprecated)
        cls._decoders = {}
        cls._encoders = {}
        cls._error_codes = []
        for nested in cls.__dict__.values():
            if isinstance(nested, StructMeta) and nested is not cls:
                nested.MESSAGE = cls  # type: ignore[attr-defined]

    @classmethod
    def decode(cls, buffer: bytes | bytearray | memoryview, version: int) -> Self:
        """Bytes after the message are ignored, as Kafka ignores them.

        Raises ProtocolError for malformed input, UnsupportedVersionError for an unknown version.
        """
        message: Self = cls.decoder(version)(buffer, 0)[0]
        return message

    @classmethod
    def decode_from(
        cls, buffer: bytes | bytearray | memoryview, position: int, version: int
    ) -> tuple[Self, int]:
        """Decodes at a position; also returns the position after the message."""
        return cls.decoder(version)(buffer, position)

    @classmethod
    def decoder(cls, version: int) -> Decoder[Self]:
        """What `decode_from` does, as a function to keep. Raises UnsupportedVersionError."""
        decoder = cls._decoders.get(version)
        if decoder is None:
            cls._check_version(version)
            decoder = cls._decoders[version] = compile_decoder(cls, version)
        return decoder

    def encode(self, version: int) -> bytes:
        """Records held in files are not read: a message with such a field needs encode_parts."""
        parts: list[Part] = []
        (self._encoders.get(version) or self._encoder(version))(self, bytearray(), parts)
        if len(parts) == 1:
            return bytes(parts[0])  # type: ignore[arg-type]
        return b"".join(parts)  # type: ignore[arg-type]

    def encode_parts(self, version: int, prefix: bytes = b"") -> list[Part]:
        """The encoded message as buffers and file slices, to be sent in order.

        The first part is a bytearray that starts with `prefix`; later ones may alias the message's
        own records.
        """
        parts: list[Part] = []
        (self._encoders.get(version) or self._encoder(version))(self, bytearray(prefix), parts)
        return parts

    def error_codes(self) -> list[int]:
        """Every error code in this message, that of success included."""
        # Kept in a list: as an attribute of its own the function would become a method.
        compiled = self._error_codes
        if not compiled:
            compiled.append(compile_error_codes(type(self)))
        return compiled[0](self)

    @classmethod
    def _encoder(cls, version: int) -> Encoder:
        cls._check_version(version)
        encoder = cls._encoders[version] = compile_encoder(cls, version)
        return encoder

    @classmethod
    def _check_version(cls, version: int) -> None:
        if version not in cls.VERSIONS:
            raise UnsupportedVersionError(
                f"{cls.__name__} has versions {cls.VERSIONS}, not {version}"
            )
