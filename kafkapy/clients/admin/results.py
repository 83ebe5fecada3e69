"""What an admin call did for each of the things it was asked about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from kafkapy.common.errors import Errors, KafkaError

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")


class Results(Mapping[K, V], Generic[K, V]):
    """A read-only dict from each key to its value, in which a key that failed raises its error.

    It has errors only when the call was made with `raise_errors=False`; otherwise the call itself
    has raised the first of them. Immutable.

    Ports: org.apache.kafka.clients.admin.CreateTopicsResult
    """

    __slots__ = ("_keys", "errors", "successes")

    def __init__(
        self, keys: tuple[K, ...], successes: Mapping[K, V], errors: Mapping[K, KafkaError]
    ) -> None:
        self._keys = keys  # in the order in which they were asked about
        self.successes = successes
        self.errors = errors

    def __getitem__(self, key: K) -> V:
        error = self.errors.get(key)
        if error is not None:
            raise error
        return self.successes[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self.successes or key in self.errors

    def replaced_by(self, later: Results[K, V]) -> Results[K, V]:
        """What became of some of the keys when they were tried again takes the place of this."""
        successes = {**self.successes, **later.successes}
        errors = {key: error for key, error in self.errors.items() if key not in later}
        return Results(self._keys, successes, {**errors, **later.errors})

    def raise_first_error(self) -> None:
        for key in self._keys:
            if key in self.errors:
                raise self.errors[key]

    def __repr__(self) -> str:
        return f"Results({dict(self.successes)}, errors={dict(self.errors)})"


def results_of_parts(whole: Results[K, dict[P, Errors]], parts: Iterable[P]) -> Results[P, None]:
    """What one call for a whole, as a group, did for its parts; the whole's error is theirs."""
    parts = tuple(dict.fromkeys(parts))
    errors: dict[P, KafkaError] = {}
    for error in whole.errors.values():
        errors.update(dict.fromkeys(parts, error))
    for told in whole.successes.values():
        for part in parts:
            code = told.get(part, Errors.UNKNOWN_SERVER_ERROR)
            if code is not Errors.NONE:
                errors[part] = code.exception(f"{part}: {code.message}")
    return Results(parts, {part: None for part in parts if part not in errors}, errors)
