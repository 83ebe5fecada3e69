"""Topics that come into being because somebody asked for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from kafkapy.common.errors import Errors, InvalidTopicError
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.topic import validate_topic_name
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)

log = logging.getLogger(__name__)

TopicErrors = dict[str, tuple[Errors, str | None]]


class TopicCreator(Protocol):
    """What of AdminManager is needed here."""

    def create_topics_without_waiting(
        self, topics: list[CreateTopicsRequest.CreatableTopic]
    ) -> TopicErrors: ...


class AutoTopicCreationManager:
    """Creates what was asked for in vain, each topic once at a time. Thread-safe.

    Ports: kafka.server.AutoTopicCreationManager
    """

    def __init__(
        self,
        creator: TopicCreator,
        group_config: GroupCoordinatorConfig,
        transaction_config: TransactionCoordinatorConfig,
        *,
        num_partitions: int,
        replication_factor: int,
        is_controller_active: Callable[[], bool],
    ) -> None:
        # constant after construction
        self._creator = creator
        self._group_config = group_config
        self._transaction_config = transaction_config
        self._num_partitions = num_partitions
        self._replication_factor = replication_factor
        self._is_controller_active = is_controller_active
        self._lock = threading.Lock()
        # guarded by self._lock
        self._in_flight: set[str] = set()

    def create_topics(self, names: list[str]) -> dict[str, Errors]:
        """The answer for each topic now; a client that is told to try again will find it."""
        errors: dict[str, Errors] = {}
        to_create = []
        for name in names:
            error = self._refusal(name)
            if error is None:
                to_create.append(name)
            else:
                errors[name] = error
        with self._lock:
            mine = [name for name in to_create if name not in self._in_flight]
            self._in_flight.update(mine)
        try:
            errors.update({name: Errors.LEADER_NOT_AVAILABLE for name in to_create})
            if mine:
                errors.update(self._create(mine))
        finally:
            with self._lock:
                self._in_flight.difference_update(mine)
        return errors

    def _refusal(self, name: str) -> Errors | None:
        try:
            validate_topic_name(name)
        except InvalidTopicError:
            return Errors.INVALID_TOPIC_EXCEPTION
        if not self._is_controller_active():
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        return None

    def _create(self, names: list[str]) -> dict[str, Errors]:
        created = self._creator.create_topics_without_waiting(
            [self._creatable_topic(name) for name in names]
        )
        errors = {}
        for name, (error, message) in created.items():
            match error:
                case Errors.NONE | Errors.TOPIC_ALREADY_EXISTS | Errors.REQUEST_TIMED_OUT:
                    log.info("Topic %s is being created because it was asked for", name)
                    errors[name] = Errors.LEADER_NOT_AVAILABLE
                case _:
                    log.warning("Topic %s could not be created: %s", name, message or error.name)
                    errors[name] = error
        return errors

    def _creatable_topic(self, name: str) -> CreateTopicsRequest.CreatableTopic:
        group, transaction = self._group_config, self._transaction_config
        partitions, factor = self._num_partitions, self._replication_factor
        configs: dict[str, str] = {}
        if name == CONSUMER_OFFSETS_TOPIC:
            partitions = group.offsets_topic_num_partitions
            factor = group.offsets_topic_replication_factor
            configs = group.offsets_topic_configs()
        elif name == TRANSACTION_STATE_TOPIC:
            partitions = transaction.transaction_topic_num_partitions
            factor = transaction.transaction_topic_replication_factor
            configs = transaction.transaction_topic_configs()
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=config, value=value)
                for config, value in configs.items()
            ],
        )
