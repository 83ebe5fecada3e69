"""The ApiVersions API: what this broker can do."""

from __future__ import annotations

import re

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.api_version_manager import ApiVersionManager

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_SOFTWARE_NAME = 3


class ApiVersionsHandler:
    """Ports: kafka.server.KafkaApis.handleApiVersionsRequest"""

    def __init__(
        self, request_channel: RequestChannel, api_version_manager: ApiVersionManager
    ) -> None:
        self._request_channel = request_channel
        self._api_version_manager = api_version_manager

    def handle(self, request: Request) -> None:
        if request.is_unsupported_api_versions:
            # A client newer than this broker: told so in v0, which every client can read, with
            # the range of this API alone so that it may try again.
            self._request_channel.send_response(
                request, self._api_version_manager.unsupported_version_response()
            )
            return
        body = request.body_as(ApiVersionsRequest)
        if request.header.api_version >= _FIRST_VERSION_WITH_SOFTWARE_NAME and not (
            _SOFTWARE_NAME.fullmatch(body.client_software_name)
            and _SOFTWARE_NAME.fullmatch(body.client_software_version)
        ):
            response = ApiVersionsResponse(error_code=Errors.INVALID_REQUEST.code)
        else:
            response = self._api_version_manager.api_versions_response()
        self._request_channel.send_response(request, response)
