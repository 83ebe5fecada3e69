"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from kafkapy.common.config_resource import AlterOperation, ConfigSource
from kafkapy.common.errors import Errors, InvalidRequestError, KafkaError
from kafkapy.common.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkapy.common.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafkapy.common.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.config_admin_manager import (
    Alteration,
    ConfigAdminManager,
    ConfigEntry,
    require_distinct,
)

log = logging.getLogger(__name__)


class ConfigsHandler:
    """Each resource succeeds or fails on its own.

    Ports: kafka.server.KafkaApis.handleDescribeConfigsRequest
    """

    def __init__(self, request_channel: RequestChannel, configs: ConfigAdminManager) -> None:
        self._request_channel = request_channel
        self._configs = configs

    def handle_describe_configs(self, request: Request) -> None:
        body = request.body_as(DescribeConfigsRequest)
        self._request_channel.send_response(
            request,
            DescribeConfigsResponse(
                results=[
                    self._describe(resource, body, request.header.api_version)
                    for resource in body.resources
                ]
            ),
        )

    def _describe(
        self,
        resource: DescribeConfigsRequest.DescribeConfigsResource,
        body: DescribeConfigsRequest,
        version: int,
    ) -> DescribeConfigsResponse.DescribeConfigsResult:
        result = DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_message=None,
        )

        def describe() -> None:
            entries = self._configs.describe(
                resource.resource_type, resource.resource_name, resource.configuration_keys
            )
            result.configs = [_described(entry, body, version) for entry in entries]

        error, message = _attempt(describe)
        result.error_code, result.error_message = error.code, message
        return result

    def handle_alter_configs(self, request: Request) -> None:
        body = request.body_as(AlterConfigsRequest)
        repeated = _repeated([(r.resource_type, r.resource_name) for r in body.resources])
        responses = []
        for resource in body.resources:

            def replace(resource: AlterConfigsRequest.AlterConfigsResource = resource) -> None:
                _refuse_repeated(resource.resource_type, resource.resource_name, repeated)
                require_distinct([config.name for config in resource.configs])
                self._configs.replace(
                    resource.resource_type,
                    resource.resource_name,
                    {config.name: config.value for config in resource.configs},
                    validate_only=body.validate_only,
                )

            error, message = _attempt(replace)
            responses.append(
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        self._request_channel.send_response(request, AlterConfigsResponse(responses=responses))

    def handle_incremental_alter_configs(self, request: Request) -> None:
        body = request.body_as(IncrementalAlterConfigsRequest)
        repeated = _repeated([(r.resource_type, r.resource_name) for r in body.resources])
        responses = []
        for resource in body.resources:

            def alter(
                resource: IncrementalAlterConfigsRequest.AlterConfigsResource = resource,
            ) -> None:
                _refuse_repeated(resource.resource_type, resource.resource_name, repeated)
                self._configs.alter(
                    resource.resource_type,
                    resource.resource_name,
                    [
                        Alteration(config.name, _operation(config.config_operation), config.value)
                        for config in resource.configs
                    ],
                    validate_only=body.validate_only,
                )

            error, message = _attempt(alter)
            responses.append(
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error.code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        self._request_channel.send_response(
            request, IncrementalAlterConfigsResponse(responses=responses)
        )


def _described(
    entry: ConfigEntry, body: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=None if entry.is_sensitive else entry.value,
        read_only=entry.read_only,
        # Later versions tell it by the source.
        is_default=version == 0 and entry.source is ConfigSource.DEFAULT_CONFIG,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(
                name=synonym.name,
                value=None if entry.is_sensitive else synonym.value,
                source=synonym.source,
            )
            for synonym in entry.synonyms
        ]
        if body.include_synonyms
        else [],
        config_type=entry.key.type.value,
        documentation=entry.key.doc if body.include_documentation else None,
    )


def _attempt(action: Callable[[], None]) -> tuple[Errors, str | None]:
    """A resource's own failure must not fail the others."""
    try:
        action()
    except KafkaError as e:
        return Errors.for_exception(e), str(e)
    except Exception as e:
        log.exception("A configuration could not be read or altered")
        return Errors.UNKNOWN_SERVER_ERROR, str(e)
    return Errors.NONE, None


def _repeated(resources: list[tuple[int, str]]) -> set[tuple[int, str]]:
    return {resource for resource, count in Counter(resources).items() if count > 1}


def _refuse_repeated(
    resource_type: int, resource_name: str, repeated: set[tuple[int, str]]
) -> None:
    if (resource_type, resource_name) in repeated:
        raise InvalidRequestError(f"{resource_name} stands more than once in this request")


def _operation(code: int) -> AlterOperation:
    try:
        return AlterOperation(code)
    except ValueError:
        raise InvalidRequestError(f"There is no alter operation {code}") from None
