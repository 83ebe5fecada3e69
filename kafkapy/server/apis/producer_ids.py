"""InitProducerId, as far as idempotent producers need it."""

from __future__ import annotations

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkapy.coordinator.transaction.producer_id_manager import ProducerIdManager
from kafkapy.network.request_channel import Request, RequestChannel


class ProducerIdsHandler:
    """Gives every idempotent producer an id of its own, at epoch 0.

    Ports: kafka.server.KafkaApis.handleInitProducerIdRequest
    """

    def __init__(
        self, request_channel: RequestChannel, producer_id_manager: ProducerIdManager
    ) -> None:
        self._request_channel = request_channel
        self._producer_id_manager = producer_id_manager

    def handle(self, request: Request) -> None:
        body = request.body_as(InitProducerIdRequest)
        if body.transactional_id is not None:
            # There is no transaction coordinator; a retriable error would keep the client waiting.
            response = InitProducerIdResponse(error_code=Errors.UNSUPPORTED_VERSION.code)
        elif (body.producer_id == NO_PRODUCER_ID) != (body.producer_epoch == NO_PRODUCER_EPOCH):
            response = InitProducerIdResponse(error_code=Errors.INVALID_REQUEST.code)
        else:
            response = InitProducerIdResponse(
                producer_id=self._producer_id_manager.generate_producer_id(), producer_epoch=0
            )
        self._request_channel.send_response(request, response)
