"""Quotas of clients: showing and changing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.clients.admin.admin_api_handler import (
    AdminApiHandler,
    ApiResult,
    SingleHandler,
    raise_for,
)
from kafkapy.clients.admin.client_quota import ClientQuotaEntity, ClientQuotaFilter
from kafkapy.clients.admin.lookup_strategy import at_any_broker
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kafkapy.common.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkapy.metadata.broker import Node


class DescribeClientQuotasHandler(
    SingleHandler[dict[ClientQuotaEntity, dict[str, float]], DescribeClientQuotasResponse]
):
    call_name = "describe_client_quotas"

    def __init__(self, quota_filter: ClientQuotaFilter) -> None:
        super().__init__(at_any_broker())
        self._filter = quota_filter

    def build(self, timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            DescribeClientQuotasRequest(
                components=[
                    DescribeClientQuotasRequest.ComponentData(
                        entity_type=component.entity_type,
                        match_type=component.match_type,
                        match=component.name,
                    )
                    for component in self._filter.components
                ],
                strict=self._filter.strict,
            )
        )

    def read(
        self, response: DescribeClientQuotasResponse
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        raise_for(response.error_code, response.error_message)
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or ()
        }


class AlterClientQuotasHandler(AdminApiHandler[ClientQuotaEntity, None, AlterClientQuotasResponse]):
    call_name = "alter_client_quotas"

    def __init__(
        self,
        alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool,
    ) -> None:
        super().__init__(at_any_broker())
        self._alterations = alterations
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[ClientQuotaEntity], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            AlterClientQuotasRequest(
                entries=[
                    AlterClientQuotasRequest.EntryData(
                        entity=[
                            AlterClientQuotasRequest.EntityData(
                                entity_type=entity_type, entity_name=name
                            )
                            for entity_type, name in key.entries.items()
                        ],
                        ops=[
                            AlterClientQuotasRequest.OpData(
                                key=name, value=value or 0.0, remove=value is None
                            )
                            for name, value in self._alterations[key].items()
                        ],
                    )
                    for key in keys
                ],
                validate_only=self._validate_only,
            )
        )

    def handle_response(
        self, keys: Sequence[ClientQuotaEntity], response: AlterClientQuotasResponse, node: Node
    ) -> ApiResult[ClientQuotaEntity, None]:
        result = self.new_result()
        for entry in response.entries:
            result.file(_entity(entry.entity), entry.error_code, None, entry.error_message)
        return result


def _entity(
    parts: Iterable[DescribeClientQuotasResponse.EntityData | AlterClientQuotasResponse.EntityData],
) -> ClientQuotaEntity:
    return ClientQuotaEntity({part.entity_type: part.entity_name for part in parts})
