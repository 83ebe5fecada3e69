"""The producer, as programs use it."""

from __future__ import annotations

import logging
import operator
import secrets
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from kafkapy.clients.client_arguments import MAX_INT64, check_topic
from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_utils import create_network_client, parse_and_validate_addresses
from kafkapy.clients.cluster import Cluster
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.producer.buffer_pool import BufferPool
from kafkapy.clients.producer.future_record_metadata import (
    DeliveryCallback,
    FutureRecordMetadata,
    failed_future,
)
from kafkapy.clients.producer.partitioner import (
    UNKNOWN_PARTITION,
    partition_for_key,
    partitioner_of,
)
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.clients.producer.producer_config import ProducerConfig, parse_producer_config
from kafkapy.clients.producer.producer_interceptors import ProducerInterceptors
from kafkapy.clients.producer.producer_metadata import ProducerMetadata
from kafkapy.clients.producer.producer_metrics import GROUP, ProducerMetrics
from kafkapy.clients.producer.producer_record import HeaderLike, ProducerRecord
from kafkapy.clients.producer.record_accumulator import AccumulatorConfig, RecordAccumulator
from kafkapy.clients.producer.record_metadata import RecordMetadata
from kafkapy.clients.producer.sender import Sender, SenderConfig
from kafkapy.clients.producer.serializers import checked_headers, serialize_function
from kafkapy.clients.producer.transaction_manager import TransactionManager
from kafkapy.clients.producer.transactional_request_result import TransactionalRequestResult
from kafkapy.common.errors import (
    ApiError,
    InvalidTopicError,
    KafkaError,
    RecordTooLargeError,
    RequestTimeoutError,
)
from kafkapy.common.record.default_record import record_size_upper_bound
from kafkapy.common.record.record import Header
from kafkapy.common.record.record_batch import RECORD_BATCH_OVERHEAD
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import SystemTime

logger = logging.getLogger(__name__)

# More than a batch and a record add to key and value: below, the size need not be known exactly.
_RECORD_SLACK_BYTES = 128


class KafkaProducer:
    """Sends records in the background, in batches. Thread-safe: one for the whole program.

    Settings are Kafka's, as keyword arguments in snake_case or as `properties` with dotted names:

        with KafkaProducer(bootstrap_servers="localhost:9092", linger_ms=5) as producer:
            producer.send("topic", b"value", key=b"key").get(timeout=10)

    Ports: org.apache.kafka.clients.producer.KafkaProducer
    """

    def __init__(self, *, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        """InvalidConfigurationError names a setting that is unknown or wrong."""
        config = parse_producer_config(properties, settings)
        addresses = parse_and_validate_addresses(config.bootstrap_servers, config.client_dns_lookup)
        # constant after construction
        self.config = config
        self._time = SystemTime()
        self._max_block_ms = config.max_block_ms
        self._max_record_bytes = min(config.max_request_size, config.buffer_memory)
        self._serialize_key = serialize_function(config.key_serializer, "key")
        self._serialize_value = serialize_function(config.value_serializer, "value")
        self._partitioner = partitioner_of(config.partitioner_class)
        self._interceptors = ProducerInterceptors(config.interceptor_classes)
        self._transaction_manager = _transaction_manager(config)
        self._is_transactional = config.transactional_id is not None
        self._metadata = ProducerMetadata(
            self._time,
            refresh_backoff_ms=config.retry_backoff_ms,
            refresh_backoff_max_ms=config.retry_backoff_max_ms,
            metadata_expire_ms=config.metadata_max_age_ms,
            metadata_idle_ms=config.metadata_max_idle_ms,
        )
        self._metadata.bootstrap(addresses)
        self._buffer_pool = BufferPool(config.buffer_memory, self._time)
        self._metrics = ProducerMetrics(self._time, self._buffer_pool)
        self._accumulator = RecordAccumulator(
            AccumulatorConfig(
                batch_size=min(config.batch_size, config.buffer_memory),
                compression=config.compression,
                linger_ms=config.linger_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                retry_backoff_max_ms=config.retry_backoff_max_ms,
                delivery_timeout_ms=config.delivery_timeout_ms,
            ),
            self._buffer_pool,
            self._time,
            transaction_manager=self._transaction_manager,
        )
        client_id = config.client_id or _default_client_id(config)
        self._sender = self._new_sender(client_id)
        self._closed = False
        self._thread = threading.Thread(
            target=self._sender.run, name=f"kafka-producer-{client_id}", daemon=True
        )
        self._thread.start()

    def _new_sender(self, client_id: str) -> Sender:
        config = self.config
        in_flight = config.max_in_flight_requests_per_connection
        client = create_network_client(
            config,
            self._time,
            client_id=client_id,
            max_in_flight_requests_per_connection=in_flight,
            metadata=self._metadata,
        )
        return Sender(
            client,
            self._metadata,
            self._accumulator,
            SenderConfig(
                max_request_size=config.max_request_size,
                acks=config.required_acks,
                retries=config.retries,
                request_timeout_ms=config.request_timeout_ms,
                retry_backoff_ms=config.retry_backoff_ms,
                guarantee_message_order=in_flight == 1,
            ),
            self._time,
            self._metrics,
            transaction_manager=self._transaction_manager,
        )

    # Sending

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Sequence[HeaderLike] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        callback: DeliveryCallback | None = None,
    ) -> FutureRecordMetadata:
        """Hand in a record; the future tells what became of it, and so does the callback.

        May wait up to `max.block.ms` for metadata or memory. Errors of the broker, and such
        time-outs, are in the future; wrong use is raised.
        """
        if self._interceptors:
            return self.send_record(
                ProducerRecord(topic, value, key, headers or (), partition, timestamp_ms), callback
            )
        try:
            return self._do_send(topic, value, key, headers, partition, timestamp_ms, callback)
        except ApiError as error:
            return self._failed(topic, partition, error, callback)

    def send_record(
        self, record: ProducerRecord, callback: DeliveryCallback | None = None
    ) -> FutureRecordMetadata:
        """`send` of a record that is put together already."""
        topic, value, key, headers, partition, timestamp_ms = self._interceptors.on_send(record)

        def acknowledge(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self._interceptors.on_acknowledgement(metadata, error)
            if callback is not None:
                callback(metadata, error)

        on_delivery = acknowledge if self._interceptors else callback
        try:
            return self._do_send(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        except ApiError as error:
            return self._failed(topic, partition, error, on_delivery)
        except KafkaError as error:
            self._interceptors.on_acknowledgement(None, error)
            raise

    def _do_send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Sequence[HeaderLike] | None,
        partition: int | None,
        timestamp_ms: int | None,
        callback: DeliveryCallback | None,
    ) -> FutureRecordMetadata:
        # Every record comes through here: what most do not need is looked at, not called.
        if self._closed:
            raise IllegalStateError("The producer is closed")
        manager = self._transaction_manager
        if manager is not None and (self._is_transactional or manager.has_fatal_error):
            manager.ensure_may_send()
        if partition is not None:
            partition = operator.index(partition)
        cluster = self._metadata.fetch()
        block_ms = self._max_block_ms
        count = len(cluster.partitions_for_topic(topic))
        if count == 0 or (partition is not None and not 0 <= partition < count):
            cluster, waited_ms = self._wait_on_metadata(topic, partition, block_ms)
            block_ms = max(0, block_ms - waited_ms)
            count = len(cluster.partitions_for_topic(topic))
        key_bytes = None
        if key is not None:
            key_bytes = self._serialize_key(topic, headers or (), key)
        value_bytes = self._serialize_value(topic, headers or (), value)
        record_headers: tuple[Header, ...] = ()
        if headers:
            record_headers = checked_headers(topic, headers)
        if partition is None:
            if self._partitioner is not None:
                chosen = self._partitioner.partition(
                    topic, key, key_bytes, value, value_bytes, cluster
                )
                partition = operator.index(chosen)
                if not 0 <= partition < count:
                    raise ValueError(f"the partitioner chose {partition} of {count} partitions")
            elif key_bytes is not None and not self.config.partitioner_ignore_keys:
                partition = partition_for_key(key_bytes, count)
            else:
                partition = UNKNOWN_PARTITION
        size = (len(key_bytes) if key_bytes else 0) + (len(value_bytes) if value_bytes else 0)
        if record_headers or size + _RECORD_SLACK_BYTES > self._max_record_bytes:
            self._ensure_valid_record_size(key_bytes, value_bytes, record_headers)
        if timestamp_ms is None:
            timestamp_ms = self._time.milliseconds()
        elif not 0 <= (timestamp_ms := operator.index(timestamp_ms)) <= MAX_INT64:
            raise ValueError(
                f"a timestamp cannot be negative or of more than 64 bits: {timestamp_ms}"
            )
        future, begun, should_wake = self._accumulator.append(
            topic,
            partition,
            timestamp_ms,
            key_bytes,
            value_bytes,
            record_headers,
            block_ms,
            cluster,
        )
        if begun or self._is_transactional:
            self._after_append(future, begun=begun)
        if callback is not None:
            future.when_done(callback)
        if should_wake:
            self._sender.wakeup()
        return future

    def _after_append(self, future: FutureRecordMetadata, *, begun: bool) -> None:
        partition = future.topic_partition
        if begun:
            # Often enough to keep the topic known: batches end long before topics are forgotten.
            self._metadata.add(partition.topic, self._time.hi_res_clock_ms())
        if self._transaction_manager is not None and self._is_transactional:
            self._transaction_manager.maybe_add_partition(partition)

    def _failed(
        self,
        topic: str,
        partition: int | None,
        error: ApiError,
        callback: DeliveryCallback | None,
    ) -> FutureRecordMetadata:
        logger.debug("A record for %s cannot be sent: %r", topic, error)
        if self._transaction_manager is not None:
            self._transaction_manager.maybe_transition_to_error_state(error)
        chosen = UNKNOWN_PARTITION if partition is None else partition
        future = failed_future(TopicPartition(topic, chosen), error)
        if callback is not None:
            future.when_done(callback)
        return future

    def _ensure_valid_record_size(
        self, key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
    ) -> None:
        size = RECORD_BATCH_OVERHEAD + record_size_upper_bound(key, value, headers)
        for name, limit in (
            ("max.request.size", self.config.max_request_size),
            ("buffer.memory", self.config.buffer_memory),
        ):
            if size > limit:
                raise RecordTooLargeError(
                    f"The record takes up to {size} bytes, more than {name}, which is {limit}"
                )

    def _wait_on_metadata(
        self, topic: str, partition: int | None, max_wait_ms: int
    ) -> tuple[Cluster, int]:
        """The metadata once it has the topic and partition, and how long that took."""
        if partition is not None and partition < 0:
            raise ValueError(f"a partition cannot be negative: {partition}")
        check_topic(topic)
        metadata = self._metadata
        started_ms = self._time.hi_res_clock_ms()
        waited_ms = 0
        if topic in metadata.fetch().invalid_topics:
            raise InvalidTopicError(f"The topic name {topic!r} is not legal")
        while True:
            metadata.add(topic, started_ms + waited_ms)
            version = metadata.request_update_for_topic(topic)
            self._sender.wakeup()
            try:
                metadata.await_update(version, max(0, max_wait_ms - waited_ms))
            except RequestTimeoutError as error:
                raise self._not_in_metadata(topic, partition, max_wait_ms) from error
            cluster = metadata.fetch()
            waited_ms = self._time.hi_res_clock_ms() - started_ms
            metadata.maybe_raise_error_for_topic(topic)
            count = len(cluster.partitions_for_topic(topic))
            if count > 0 and (partition is None or partition < count):
                return cluster, waited_ms
            if waited_ms >= max_wait_ms:
                raise self._not_in_metadata(topic, partition, max_wait_ms)

    def _not_in_metadata(
        self, topic: str, partition: int | None, max_wait_ms: int
    ) -> RequestTimeoutError:
        cluster = self._metadata.fetch()
        if cluster.is_bootstrap_configured:
            return RequestTimeoutError(
                f"None of the bootstrap servers answered within {max_wait_ms} ms:"
                f" {self._metadata.describe_nodes()}"
            )
        count = len(cluster.partitions_for_topic(topic))
        if partition is not None and count > 0:
            return RequestTimeoutError(
                f"Partition {partition} of topic {topic}, which has {count}, did not appear"
                f" within {max_wait_ms} ms"
            )
        return RequestTimeoutError(f"Topic {topic} did not appear within {max_wait_ms} ms")

    def flush(self, timeout: float | None = None) -> None:
        """Wait, in seconds, until everything sent so far is written or has failed."""
        _check_timeout(timeout)
        self._ensure_open()
        if threading.current_thread() is self._thread:
            raise IllegalStateError("flush in a callback would wait for itself")
        self._accumulator.begin_flush()
        self._sender.wakeup()
        self._accumulator.await_flush_completion(None if timeout is None else int(timeout * 1000))

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of the topic; RequestTimeoutError when it does not exist."""
        self._ensure_open()
        cluster, _ = self._wait_on_metadata(topic, None, self._max_block_ms)
        return {info.partition for info in cluster.partitions_for_topic(topic)}

    def metrics(self) -> dict[str, dict[str, float]]:
        """Values by Kafka's names, in groups."""
        return {GROUP: self._metrics.snapshot()}

    def bootstrap_connected(self) -> bool:
        """Whether the cluster has been heard of."""
        return not self._metadata.fetch().is_bootstrap_configured

    # Transactions

    def init_transactions(self) -> None:
        """Once, before the first transaction: earlier producers of the id are fenced."""
        self._await(self._manager().initialize_transactions())

    def begin_transaction(self) -> None:
        self._manager().begin_transaction()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit a consumer's offsets with the transaction; a group's id alone does not fence."""
        manager = self._manager()
        if isinstance(group_metadata, str):
            group_metadata = ConsumerGroupMetadata(group_metadata)
        if not isinstance(group_metadata, ConsumerGroupMetadata):
            raise TypeError(f"expected a ConsumerGroupMetadata, not {group_metadata!r}")
        for partition, offset in offsets.items():
            _check_offset(partition, offset)
        if offsets:
            self._await(manager.send_offsets_to_transaction(offsets, group_metadata))

    def commit_transaction(self) -> None:
        """Raises what the transaction failed with; then abort it. After a time-out call again."""
        self._await(self._manager().begin_commit())

    def abort_transaction(self) -> None:
        self._await(self._manager().begin_abort())

    def prepare_transaction(self) -> PreparedTransaction:
        """Wait until all records are written, and leave the end of the transaction to others.

        Closing the producer does not abort it then; AdminClient.end_transactions ends it. Raises
        what a record failed with. commit_transaction and abort_transaction still work.
        """
        manager = self._manager()
        self.flush()
        return manager.prepare_transaction()

    def _manager(self) -> TransactionManager:
        self._ensure_open()
        if self._transaction_manager is None or not self._is_transactional:
            raise IllegalStateError("Transactions need a producer with a transactional_id")
        return self._transaction_manager

    def _await(self, result: TransactionalRequestResult) -> None:
        self._sender.wakeup()
        result.wait(self._max_block_ms)

    # The end

    def close(self, timeout: float | None = None) -> None:
        """Send what there is, for at most that many seconds, then end. Idempotent.

        In a callback it does not wait.
        """
        _check_timeout(timeout)
        if self._closed and not self._thread.is_alive():
            return
        self._closed = True
        if threading.current_thread() is self._thread:
            self._sender.force_close()
            self._buffer_pool.close()
            self._interceptors.close()
            return
        if timeout == 0:
            self._sender.force_close()
        else:
            self._sender.initiate_close()
            self._thread.join(timeout)
            if self._thread.is_alive():
                logger.info("Not everything could be sent within %s s", timeout)
                self._sender.force_close()
        self._buffer_pool.close()
        self._thread.join()
        self._interceptors.close()

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise IllegalStateError("The producer is closed")


def _check_offset(partition: Any, offset: Any) -> None:
    # Before a request is made of them: one that cannot be written would block the transaction.
    if not isinstance(partition, TopicPartition) or not isinstance(offset, OffsetAndMetadata):
        raise TypeError(
            f"offsets are of a TopicPartition to OffsetAndMetadata, not {partition!r} to {offset!r}"
        )
    if not 0 <= operator.index(offset.offset) <= MAX_INT64:
        raise ValueError(f"{partition} cannot have the offset {offset.offset}")


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and timeout < 0:
        raise ValueError(f"a timeout cannot be negative: {timeout}")


def _default_client_id(config: ProducerConfig) -> str:
    if config.transactional_id is not None:
        return f"producer-{config.transactional_id}"
    return f"producer-{secrets.token_hex(4)}"


def _transaction_manager(config: ProducerConfig) -> TransactionManager | None:
    if not config.enable_idempotence:
        return None
    return TransactionManager(
        transactional_id=config.transactional_id,
        transaction_timeout_ms=config.transaction_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
    )
