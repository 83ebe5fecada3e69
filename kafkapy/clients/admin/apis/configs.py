"""Settings of resources: showing and changing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.clients.admin.admin_api_handler import AdminApiHandler, ApiResult
from kafkapy.clients.admin.config_entry import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from kafkapy.clients.admin.lookup_strategy import KnownNodeStrategy
from kafkapy.clients.admin.node_provider import (
    LEAST_LOADED_NODE,
    ConstantNodeIdProvider,
    NodeProvider,
)
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.config_def import ConfigType
from kafkapy.common.config_resource import ConfigSource
from kafkapy.common.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from kafkapy.common.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafkapy.common.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.metadata.broker import Node

# Version 0 tells of a value whether it is the default, and not otherwise where it comes from.
_UNKNOWN_SOURCE = -1
_SOURCE_OF_V0 = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.STATIC_BROKER_CONFIG,
}
_CONFIG_TYPES = {kind.value: kind for kind in ConfigType}


def _provider_for(resource: ConfigResource) -> NodeProvider:
    broker_id = resource.broker_id
    return LEAST_LOADED_NODE if broker_id is None else ConstantNodeIdProvider(broker_id)


class DescribeConfigsHandler(
    AdminApiHandler[ConfigResource, dict[str, ConfigEntry], DescribeConfigsResponse]
):
    call_name = "describe_configs"

    def __init__(self, *, include_synonyms: bool, include_documentation: bool) -> None:
        super().__init__(KnownNodeStrategy(_provider_for))
        self._include_synonyms = include_synonyms
        self._include_documentation = include_documentation

    def build_request(self, keys: Sequence[ConfigResource], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            lambda version: DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=key.resource_type,
                        resource_name=key.name,
                        configuration_keys=None,
                    )
                    for key in keys
                ],
                include_synonyms=self._include_synonyms and version >= 1,
                include_documentation=self._include_documentation and version >= 3,
            ),
            api_key=DescribeConfigsRequest.API_KEY,
        )

    def handle_response(
        self, keys: Sequence[ConfigResource], response: DescribeConfigsResponse, node: Node
    ) -> ApiResult[ConfigResource, dict[str, ConfigEntry]]:
        result = self.new_result()
        for described in response.results:
            key = ConfigResource(
                ConfigResourceType(described.resource_type), described.resource_name
            )
            entries = {entry.name: _entry(entry, key) for entry in described.configs}
            result.file(key, described.error_code, entries, described.error_message)
        return result


class IncrementalAlterConfigsHandler(
    AdminApiHandler[ConfigResource, None, IncrementalAlterConfigsResponse]
):
    call_name = "incremental_alter_configs"

    def __init__(
        self,
        changes: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool,
    ) -> None:
        super().__init__(KnownNodeStrategy(_provider_for))
        self._changes = {resource: tuple(ops) for resource, ops in changes.items()}
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[ConfigResource], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            IncrementalAlterConfigsRequest(
                resources=[
                    IncrementalAlterConfigsRequest.AlterConfigsResource(
                        resource_type=key.resource_type,
                        resource_name=key.name,
                        configs=[
                            IncrementalAlterConfigsRequest.AlterableConfig(
                                name=op.name, config_operation=op.op_type, value=op.value
                            )
                            for op in self._changes[key]
                        ],
                    )
                    for key in keys
                ],
                validate_only=self._validate_only,
            )
        )

    def handle_response(
        self, keys: Sequence[ConfigResource], response: IncrementalAlterConfigsResponse, node: Node
    ) -> ApiResult[ConfigResource, None]:
        return _filed(self.new_result(), response)


class AlterConfigsHandler(AdminApiHandler[ConfigResource, None, AlterConfigsResponse]):
    """All settings of a resource at once: those not named go back to their defaults."""

    call_name = "alter_configs"

    def __init__(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        validate_only: bool,
    ) -> None:
        super().__init__(KnownNodeStrategy(_provider_for))
        self._configs = configs
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[ConfigResource], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            AlterConfigsRequest(
                resources=[
                    AlterConfigsRequest.AlterConfigsResource(
                        resource_type=key.resource_type,
                        resource_name=key.name,
                        configs=[
                            AlterConfigsRequest.AlterableConfig(name=name, value=value)
                            for name, value in self._configs[key].items()
                        ],
                    )
                    for key in keys
                ],
                validate_only=self._validate_only,
            )
        )

    def handle_response(
        self, keys: Sequence[ConfigResource], response: AlterConfigsResponse, node: Node
    ) -> ApiResult[ConfigResource, None]:
        return _filed(self.new_result(), response)


def _filed(
    result: ApiResult[ConfigResource, None],
    response: AlterConfigsResponse | IncrementalAlterConfigsResponse,
) -> ApiResult[ConfigResource, None]:
    for altered in response.responses:
        key = ConfigResource(ConfigResourceType(altered.resource_type), altered.resource_name)
        result.file(key, altered.error_code, None, altered.error_message)
    return result


def _entry(
    entry: DescribeConfigsResponse.DescribeConfigsResourceResult, resource: ConfigResource
) -> ConfigEntry:
    if entry.config_source != _UNKNOWN_SOURCE:
        source = ConfigSource(entry.config_source)
    elif entry.is_default:
        source = ConfigSource.DEFAULT_CONFIG
    else:
        source = _SOURCE_OF_V0.get(resource.resource_type, ConfigSource.UNKNOWN)
    return ConfigEntry(
        entry.name,
        entry.value,
        source,
        entry.is_sensitive,
        entry.read_only,
        tuple(ConfigSynonym(s.name, s.value, ConfigSource(s.source)) for s in entry.synonyms),
        _CONFIG_TYPES.get(entry.config_type),
        entry.documentation,
    )
