from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from kafkapy.clients.admin.lookup_strategy import LookupResult, LookupStrategy
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import Errors, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.schema import Message

_FIRST_BATCHED_VERSION = 4
_FIRST_VERSION_WITH_TYPE = 1
_RETRIABLE = frozenset({Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS})


class CoordinatorType(IntEnum):
    """Ports: org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType"""

    GROUP = 0
    TRANSACTION = 1


class CoordinatorStrategy(LookupStrategy[str]):
    """The coordinator of a group or a transactional id.

    Ports: org.apache.kafka.clients.admin.internals.CoordinatorStrategy
    """

    call_name = "the look-up of coordinators"

    def __init__(self, coordinator_type: CoordinatorType) -> None:
        self._type = coordinator_type

    def build_request(self, keys: Sequence[str]) -> VersionedRequest:
        def build(version: int) -> FindCoordinatorRequest:
            if version >= _FIRST_BATCHED_VERSION:
                return FindCoordinatorRequest(key_type=self._type, coordinator_keys=list(keys))
            if len(keys) > 1:
                raise UnsupportedVersionError("The broker looks up one coordinator at a time")
            if version < _FIRST_VERSION_WITH_TYPE and self._type is not CoordinatorType.GROUP:
                raise UnsupportedVersionError("The broker does not support transactions")
            return FindCoordinatorRequest(key=keys[0], key_type=self._type)

        return VersionedRequest(build, api_key=ApiKeys.FIND_COORDINATOR)

    def handle_response(self, keys: Sequence[str], response: Message) -> LookupResult[str]:
        assert isinstance(response, FindCoordinatorResponse)
        result: LookupResult[str] = LookupResult()
        if response.coordinators:
            for found in response.coordinators:
                self._file(result, found.key, found)
        else:
            self._file(result, keys[0], response)
        return result

    def handle_unsupported_version(self, error: UnsupportedVersionError) -> bool:
        was_batched, self.is_batched = self.is_batched, False
        return was_batched

    @staticmethod
    def _file(
        result: LookupResult[str],
        key: str,
        found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator,
    ) -> None:
        error = Errors.for_code(found.error_code)
        if error is Errors.NONE:
            result.mapped[key] = found.node_id
            return
        exception = error.exception(found.error_message or f"{key}: {error.message}")
        if error in _RETRIABLE:
            result.retried[key] = exception
        else:
            result.failed[key] = exception
