"""The thread that sends what producers have accumulated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.kafka_client import KafkaClient
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.clients.producer.producer_metadata import ProducerMetadata
from kafkapy.clients.producer.producer_metrics import ProducerMetrics
from kafkapy.clients.producer.record_accumulator import RecordAccumulator
from kafkapy.clients.producer.record_metadata import UNKNOWN_OFFSET
from kafkapy.clients.producer.transaction_manager import TransactionManager
from kafkapy.clients.producer.txn_request_handlers import TxnRequestHandler
from kafkapy.common.errors import (
    ClusterAuthorizationError,
    Errors,
    InvalidMetadataError,
    InvalidRecordError,
    KafkaError,
    RequestTimeoutError,
    RetriableError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.coordinator_type import CoordinatorType
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

ACKS_ALL = -1
# Version 3 is the first to carry batches of magic 2, which is all that this client writes.
_MIN_PRODUCE_VERSION = 3
_FIRST_INIT_PRODUCER_ID_WITH_EPOCH = 3
_UNKNOWN_LOG_START_OFFSET = -1


class TransactionAbortedError(KafkaError):
    """The record was not sent because its transaction is being aborted.

    Ports: org.apache.kafka.common.errors.TransactionAbortedException
    """


@dataclass(frozen=True, slots=True)
class SenderConfig:
    """What the sender is told by the producer's settings."""

    max_request_size: int
    acks: int
    retries: int
    request_timeout_ms: int
    retry_backoff_ms: int
    guarantee_message_order: bool  # one request in flight, and no idempotence to keep the order


@dataclass(frozen=True, slots=True)
class _PartitionResponse:
    error: Errors
    base_offset: int = UNKNOWN_OFFSET
    log_append_time: int = NO_TIMESTAMP
    log_start_offset: int = _UNKNOWN_LOG_START_OFFSET
    error_message: str | None = None
    record_errors: tuple[tuple[int, str | None], ...] = ()


class Sender:
    """Sends full batches to the leaders of their partitions and handles the answers.

    `run` is its thread's; `wakeup`, `initiate_close` and `force_close` are for any.

    Ports: org.apache.kafka.clients.producer.internals.Sender
    """

    def __init__(
        self,
        client: KafkaClient,
        metadata: ProducerMetadata,
        accumulator: RecordAccumulator,
        config: SenderConfig,
        time: Time,
        metrics: ProducerMetrics,
        *,
        transaction_manager: TransactionManager | None = None,
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._config = config
        self._time = time
        self._metrics = metrics
        self._transaction_manager = transaction_manager
        # set by any thread
        self._running = True
        self._force_close = False
        # used by the sender's thread only
        self._in_flight: dict[TopicPartition, dict[ProducerBatch, None]] = {}

    @property
    def is_running(self) -> bool:
        return self._running

    def run(self) -> None:
        """Until it is closed, and then until what was accepted is done."""
        try:
            while self._running:
                self._run_once_logged()
            while not self._force_close and self._has_work_left():
                self._run_once_logged()
            while not self._force_close and self._has_ongoing_transaction():
                self._abort_ongoing_transaction()
                self._run_once_logged()
        finally:
            # Also when something unforeseen ended the thread: nobody shall wait for ever.
            self._running = False
            error = IllegalStateError("The producer was closed before the record was sent")
            if self._transaction_manager is not None:
                self._transaction_manager.close()
            self._accumulator.close()
            self._accumulator.abort_incomplete_batches(error)
            self._client.close()

    def wakeup(self) -> None:
        self._client.wakeup()

    def initiate_close(self) -> None:
        """Accept nothing more, send what there is, then end."""
        self._accumulator.close()
        self._running = False
        self.wakeup()

    def force_close(self) -> None:
        """End without sending what there is."""
        self._force_close = True
        self.initiate_close()

    def run_once(self) -> None:
        """One round: transactional requests first, then batches, then the network."""
        manager = self._transaction_manager
        if manager is not None:
            manager.maybe_resolve_sequences()
            error = manager.last_error
            if manager.has_fatal_error:
                if error is not None:
                    self._maybe_abort_batches(error)
                self._client.poll(self._config.retry_backoff_ms, self._time.hi_res_clock_ms())
                return
            if manager.has_abortable_error and self._handle_authorization_error(manager, error):
                return
            manager.bump_idempotent_epoch_and_reset_id_if_needed()
            if self._maybe_send_and_poll_transactional_request(manager):
                # Such rounds may go on for long: the delivery time-out holds all the same.
                if not manager.has_fatal_error:
                    self._expire_batches(self._time.hi_res_clock_ms())
                return
        now_ms = self._time.hi_res_clock_ms()
        poll_timeout_ms: int | None = None
        # As many requests as may be in flight, before the network has its turn.
        while poll_timeout_ms is None:
            poll_timeout_ms = self._send_producer_data(now_ms)
        self._client.poll(poll_timeout_ms, now_ms)

    def _run_once_logged(self) -> None:
        try:
            self.run_once()
        except Exception:
            # The thread goes on: the next round may do better, and batches expire in any case.
            logger.exception("The producer's sender failed")
            self._time.sleep(self._config.retry_backoff_ms)

    # Batches

    def _send_producer_data(self, now_ms: int) -> int | None:
        """Send what is ready, at most one batch of a partition; None when there may be more.

        Else how long the network may be waited on.
        """
        accumulator = self._accumulator
        snapshot = self._metadata.snapshot
        ready = accumulator.ready(snapshot, now_ms)
        if ready.unknown_leader_topics:
            for topic in ready.unknown_leader_topics:
                self._metadata.add(topic, now_ms)
            self._metadata.request_update()
        nodes: list[Node] = []
        not_ready_timeout_ms = FOREVER_MS
        for node in ready.ready_nodes:
            if self._client.ready(node, now_ms):
                nodes.append(node)
            else:
                not_ready_timeout_ms = min(
                    not_ready_timeout_ms, self._client.poll_delay_ms(node, now_ms)
                )
        drained = accumulator.drain(snapshot, nodes, self._config.max_request_size, now_ms)
        self._add_to_in_flight(drained)
        self._expire_batches(now_ms)
        has_sent = self._send_produce_requests(drained, now_ms)
        poll_timeout_ms = min(
            ready.next_ready_check_delay_ms,
            not_ready_timeout_ms,
            accumulator.time_to_next_expiry_ms(now_ms),
        )
        if has_sent:
            return None
        if nodes:
            # What is ready waits for those before it: an answer will wake us.
            return min(poll_timeout_ms, self._config.retry_backoff_ms)
        return poll_timeout_ms

    def _add_to_in_flight(self, drained: dict[int, list[ProducerBatch]]) -> None:
        for batches in drained.values():
            for batch in batches:
                partition = batch.topic_partition
                self._in_flight.setdefault(partition, {})[batch] = None
                if self._config.guarantee_message_order:
                    self._accumulator.mute_partition(partition)

    def _expire_batches(self, now_ms: int) -> None:
        accumulator = self._accumulator
        accumulator.reset_next_batch_expiry()
        expired = self._take_expired_in_flight(now_ms) + accumulator.expired_batches(now_ms)
        for batch in expired:
            self._expire(batch, now_ms)

    def _take_expired_in_flight(self, now_ms: int) -> list[ProducerBatch]:
        expired: list[ProducerBatch] = []
        timeout_ms = self._accumulator.delivery_timeout_ms
        for partition, batches in list(self._in_flight.items()):
            for batch in list(batches):
                if not batch.has_reached_delivery_timeout(timeout_ms, now_ms):
                    self._accumulator.maybe_update_next_batch_expiry(batch)
                    break
                del batches[batch]
                if not batch.is_done:
                    expired.append(batch)
            if not batches:
                del self._in_flight[partition]
        return expired

    def _expire(self, batch: ProducerBatch, now_ms: int) -> None:
        error = RequestTimeoutError(
            f"{batch.record_count} records for {batch.topic_partition} were not delivered within"
            f" {now_ms - batch.created_ms} ms"
        )
        self._fail_batch(batch, error, adjust_sequence_numbers=False)
        manager = self._transaction_manager
        if manager is not None and batch.in_retry:
            # The broker may have it or not: later sequences must wait until that is known.
            manager.mark_sequence_unresolved(batch)

    def _send_produce_requests(self, drained: dict[int, list[ProducerBatch]], now_ms: int) -> bool:
        sent = False
        for node_id, batches in drained.items():
            if batches:
                self._send_produce_request(node_id, batches, now_ms)
                sent = True
        return sent

    def _send_produce_request(
        self, node_id: int, batches: list[ProducerBatch], now_ms: int
    ) -> None:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        by_partition: dict[TopicPartition, ProducerBatch] = {}
        for batch in batches:
            partition = batch.topic_partition
            by_partition[partition] = batch
            data = topics.get(partition.topic)
            if data is None:
                data = topics[partition.topic] = ProduceRequest.TopicProduceData(
                    name=partition.topic
                )
            data.partition_data.append(
                ProduceRequest.PartitionProduceData(
                    index=partition.partition, records=memoryview(batch.close())
                )
            )
        manager = self._transaction_manager
        message = ProduceRequest(
            transactional_id=None if manager is None else manager.transactional_id,
            acks=self._config.acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        self._metrics.request_sent(batches)
        request = self._client.new_client_request(
            node_id,
            VersionedRequest(message, min_version=_MIN_PRODUCE_VERSION),
            now_ms,
            expect_response=self._config.acks != 0,
            request_timeout_ms=self._config.request_timeout_ms,
            callback=lambda response: self._handle_produce_response(response, by_partition),
        )
        self._client.send(request, now_ms)

    # Answers

    def _handle_produce_response(
        self, response: ClientResponse, batches: dict[TopicPartition, ProducerBatch]
    ) -> None:
        now_ms = self._time.hi_res_clock_ms()
        message = response.message
        if message is None:
            self._complete_all(batches, self._without_answer(response), now_ms)
            return
        assert isinstance(message, ProduceResponse)
        self._metrics.response_received(response.request_latency_ms)
        leaders: dict[TopicPartition, tuple[int, int]] = {}
        for topic in message.responses:
            for result in topic.partition_responses:
                partition = TopicPartition(topic.name, result.index)
                batch = batches.get(partition)
                if batch is None:
                    logger.warning("A response names %s, which the request did not", partition)
                    continue
                if result.error_code:
                    leader = result.current_leader
                    if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                        leaders[partition] = (leader.leader_id, leader.leader_epoch)
                self._complete_batch(
                    batch,
                    _PartitionResponse(
                        Errors.for_code(result.error_code),
                        result.base_offset,
                        result.log_append_time_ms,
                        result.log_start_offset,
                        result.error_message,
                        tuple(
                            (record.batch_index, record.batch_index_error_message)
                            for record in result.record_errors
                        ),
                    ),
                    now_ms,
                )
        if leaders:
            nodes = [Node(n.node_id, n.host, n.port, n.rack) for n in message.node_endpoints]
            self._metadata.update_partition_leadership(leaders, nodes)

    def _without_answer(self, response: ClientResponse) -> _PartitionResponse:
        if response.disconnected:
            what = "no answer in time" if response.timed_out else "disconnected"
            return _PartitionResponse(
                Errors.REQUEST_TIMED_OUT if response.timed_out else Errors.NETWORK_EXCEPTION,
                error_message=f"Node {response.destination}: {what}",
            )
        if response.version_mismatch is not None:
            return _PartitionResponse(
                Errors.UNSUPPORTED_VERSION, error_message=str(response.version_mismatch)
            )
        return _PartitionResponse(Errors.NONE)  # acks=0: it has been sent, and that is all

    def _complete_all(
        self,
        batches: dict[TopicPartition, ProducerBatch],
        response: _PartitionResponse,
        now_ms: int,
    ) -> None:
        for batch in batches.values():
            self._complete_batch(batch, response, now_ms)

    def _complete_batch(
        self, batch: ProducerBatch, response: _PartitionResponse, now_ms: int
    ) -> None:
        error = response.error
        if error is Errors.NONE:
            self._succeed(batch, response)
        elif error is Errors.MESSAGE_TOO_LARGE and batch.record_count > 1 and not batch.is_done:
            self._split(batch)
        else:
            if self._can_retry(batch, response, now_ms):
                logger.warning(
                    "Retrying %s after %s, attempt %d", batch, error.name, batch.attempts + 1
                )
                self._metrics.record_retries += batch.record_count
                self._reenqueue(batch, now_ms)
            elif error is Errors.DUPLICATE_SEQUENCE_NUMBER:
                # It was written before, by a request whose answer was lost.
                self._succeed(batch, response)
            else:
                self._fail(batch, response)
            exception = error.exception_class
            if exception is not None and issubclass(exception, InvalidMetadataError):
                self._metadata.request_update()
        if self._config.guarantee_message_order:
            self._accumulator.unmute_partition(batch.topic_partition)

    def _can_retry(self, batch: ProducerBatch, response: _PartitionResponse, now_ms: int) -> bool:
        timeout_ms = self._accumulator.delivery_timeout_ms
        if (
            batch.has_reached_delivery_timeout(timeout_ms, now_ms)
            or batch.attempts >= self._config.retries
            or batch.is_done
        ):
            return False
        manager = self._transaction_manager
        if manager is not None:
            return manager.can_retry(batch, response.error, response.log_start_offset)
        exception = response.error.exception_class
        return exception is not None and issubclass(exception, RetriableError)

    def _reenqueue(self, batch: ProducerBatch, now_ms: int) -> None:
        self._accumulator.reenqueue(batch, now_ms)
        self._remove_from_in_flight(batch)

    def _split(self, batch: ProducerBatch) -> None:
        logger.warning("%s is too large for the broker and will be split", batch)
        manager = self._transaction_manager
        if manager is not None:
            manager.remove_in_flight_batch(batch)
        self._accumulator.split_and_reenqueue(batch)
        self._remove_and_deallocate(batch)
        self._metrics.batch_splits += 1

    def _succeed(self, batch: ProducerBatch, response: _PartitionResponse) -> None:
        manager = self._transaction_manager
        if manager is not None:
            manager.handle_completed_batch(
                batch,
                response.base_offset,
                is_duplicate=response.error is Errors.DUPLICATE_SEQUENCE_NUMBER,
            )
        if batch.complete(response.base_offset, response.log_append_time):
            self._remove_and_deallocate(batch)

    def _fail(self, batch: ProducerBatch, response: _PartitionResponse) -> None:
        error = response.error
        exception: KafkaError
        if error is Errors.TOPIC_AUTHORIZATION_FAILED:
            topic = batch.topic_partition.topic
            exception = TopicAuthorizationError(f"Not authorized to write to topic {topic}")
        elif error is Errors.CLUSTER_AUTHORIZATION_FAILED:
            exception = ClusterAuthorizationError("Not authorized to write without transactions")
        else:
            exception = error.exception(response.error_message)
        by_index: Callable[[int], KafkaError] | None = None
        if response.record_errors:
            refused = dict(response.record_errors)

            def by_index(index: int) -> KafkaError:
                if index in refused:
                    return InvalidRecordError(refused[index] or response.error.message)
                return KafkaError(
                    "The record was not written because another of its batch was refused: "
                    f"{exception}"
                )

        self._fail_batch(
            batch,
            exception,
            # What was never written leaves a gap in the sequence; what may have been does not.
            adjust_sequence_numbers=batch.attempts < self._config.retries,
            by_index=by_index,
        )

    def _fail_batch(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        *,
        adjust_sequence_numbers: bool,
        by_index: Callable[[int], KafkaError] | None = None,
    ) -> None:
        manager = self._transaction_manager
        is_late = batch.is_done
        if not is_late:
            self._metrics.record_errors += batch.record_count
        # What has expired has failed its transaction then: by now there may be another.
        if manager is not None and not (is_late and manager.is_transactional):
            manager.handle_failed_batch(
                batch, error, adjust_sequence_numbers=adjust_sequence_numbers
            )
        if batch.complete_exceptionally(error, by_index):
            self._remove_and_deallocate(batch)

    def _remove_and_deallocate(self, batch: ProducerBatch) -> None:
        self._remove_from_in_flight(batch)
        self._accumulator.deallocate(batch)

    def _remove_from_in_flight(self, batch: ProducerBatch) -> None:
        batches = self._in_flight.get(batch.topic_partition)
        if batches is not None:
            batches.pop(batch, None)
            if not batches:
                del self._in_flight[batch.topic_partition]

    def _maybe_abort_batches(self, error: KafkaError) -> None:
        if self._accumulator.has_incomplete:
            logger.error("Aborting what was not sent because of %r", error)
            self._accumulator.abort_incomplete_batches(error)
            self._in_flight.clear()

    # Transactions

    def _maybe_send_and_poll_transactional_request(self, manager: TransactionManager) -> bool:
        """Whether this round was for a transactional request."""
        backoff_ms = self._config.retry_backoff_ms
        if manager.has_in_flight_request:
            self._client.poll(backoff_ms, self._time.hi_res_clock_ms())
            return True
        if manager.has_abortable_error and manager.last_error is not None:
            self._accumulator.abort_undrained_batches(manager.last_error)
        elif manager.is_aborting:
            self._accumulator.abort_undrained_batches(
                TransactionAbortedError("The transaction was aborted before the record was sent")
            )
        handler = manager.next_request(has_incomplete_batches=self._accumulator.has_incomplete)
        if handler is None:
            return False
        kind = handler.coordinator_type
        if kind is not None:
            node = manager.coordinator(kind)
        else:
            node = self._client.least_loaded_node(self._time.hi_res_clock_ms())
        if node is None or not self._await_ready(manager, node, kind):
            refusal = None if node is None else self._client.authentication_error(node)
            if refusal is not None and manager.is_transactional:
                handler.fail_fatally(refusal)
                manager.authentication_failed(refusal)
            else:
                # Without transactions each send hears of a refusal through the metadata.
                self._find_coordinator_and_retry(manager, handler)
            return True
        if handler.is_retry:
            self._time.sleep(handler.retry_backoff_ms)
        now_ms = self._time.hi_res_clock_ms()
        request = self._client.new_client_request(
            node.id,
            handler.request(),
            now_ms,
            request_timeout_ms=self._config.request_timeout_ms,
            callback=handler.on_complete,
        )
        # Before it is sent: an answer must find it.
        manager.set_in_flight_correlation_id(request.correlation_id)
        self._client.send(request, now_ms)
        self._client.poll(backoff_ms, self._time.hi_res_clock_ms())
        return True

    def _await_ready(
        self, manager: TransactionManager, node: Node, kind: CoordinatorType | None
    ) -> bool:
        deadline_ms = self._time.hi_res_clock_ms() + self._config.request_timeout_ms
        while not self._client.ready(node, now_ms := self._time.hi_res_clock_ms()):
            if self._client.connection_failed(node) or now_ms >= deadline_ms or self._force_close:
                return False
            self._client.poll(min(self._config.retry_backoff_ms, deadline_ms - now_ms), now_ms)
        if kind is CoordinatorType.TRANSACTION:
            versions = self._client.node_api_versions(node.id)
            init = None if versions is None else versions.api_version(ApiKeys.INIT_PRODUCER_ID)
            manager.handle_coordinator_ready(
                supports_bumping_epoch=init is not None
                and init.highest >= _FIRST_INIT_PRODUCER_ID_WITH_EPOCH
            )
        return True

    def _find_coordinator_and_retry(
        self, manager: TransactionManager, handler: TxnRequestHandler
    ) -> None:
        if handler.coordinator_type is not None:
            manager.lookup_coordinator_for(handler)
        else:
            # No node is to be had: wait for metadata rather than spin.
            self._metadata.request_update()
            self._client.poll(self._config.retry_backoff_ms, self._time.hi_res_clock_ms())
        manager.retry(handler)

    def _handle_authorization_error(
        self, manager: TransactionManager, error: KafkaError | None
    ) -> bool:
        if isinstance(error, TransactionalIdAuthorizationError | ClusterAuthorizationError):
            manager.fail_pending_requests(error)
            self._maybe_abort_batches(error)
            manager.transition_to_uninitialized(error)
            return True
        return False

    # The end

    def _has_work_left(self) -> bool:
        manager = self._transaction_manager
        return (
            self._accumulator.has_undrained
            or self._client.in_flight_request_count() > 0
            or (
                manager is not None
                and manager.has_pending_requests
                and manager.has_ongoing_transaction
            )
        )

    def _has_ongoing_transaction(self) -> bool:
        manager = self._transaction_manager
        return manager is not None and manager.has_ongoing_transaction

    def _abort_ongoing_transaction(self) -> None:
        manager = self._transaction_manager
        if manager is not None and not manager.is_completing:
            logger.info("Aborting the transaction that was open when the producer was closed")
            # An empty transaction ends without a request: the network is not to be waited on then.
            self.wakeup()
            try:
                manager.begin_abort()
            except KafkaError:
                logger.exception("The transaction cannot be aborted")
                self._force_close = True
