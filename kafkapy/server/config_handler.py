"""Altered settings, taken from the metadata store to where they have effect."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from kafkapy.controller.partition_state_machine import UNCLEAN_LEADER_ELECTION_ENABLE
from kafkapy.server.dynamic_broker_config import DynamicBrokerConfig
from kafkapy.storage.log_manager import LogManager
from kafkapy.utils.time import Time
from kafkapy.zk.admin_zk_client import AdminZkClient
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import (
    DEFAULT_ENTITY_NAME,
    ConfigEntityChangeNotificationSequenceZNode,
    ConfigEntityChangeNotificationZNode,
)
from kafkapy.zk.zk_node_change_notification_listener import ZkNodeChangeNotificationListener

log = logging.getLogger(__name__)


class ConfigHandler(Protocol):
    """Ports: kafka.server.ConfigHandler"""

    def process_config_changes(self, entity_name: str, properties: Mapping[str, str]) -> None: ...


class TopicConfigHandler:
    """Ports: kafka.server.TopicConfigHandler"""

    def __init__(
        self, log_manager: LogManager, on_unclean_election_enabled: Callable[[str], None]
    ) -> None:
        self._log_manager = log_manager
        self._on_unclean_election_enabled = on_unclean_election_enabled

    def process_config_changes(self, entity_name: str, properties: Mapping[str, str]) -> None:
        self._log_manager.update_topic_config(entity_name, dict(properties))
        if properties.get(UNCLEAN_LEADER_ELECTION_ENABLE, "").strip().lower() == "true":
            self._on_unclean_election_enabled(entity_name)


class BrokerConfigHandler:
    """Ports: kafka.server.BrokerConfigHandler"""

    def __init__(self, broker_id: int, dynamic_config: DynamicBrokerConfig) -> None:
        self._broker_id = broker_id
        self._dynamic_config = dynamic_config

    def process_config_changes(self, entity_name: str, properties: Mapping[str, str]) -> None:
        if entity_name == DEFAULT_ENTITY_NAME:
            self._dynamic_config.update_default_config(properties)
        elif entity_name == str(self._broker_id):
            self._dynamic_config.update_broker_config(properties)


class ConfigChangeDispatcher:
    """Tells the right handler when the settings of an entity have changed.

    Ports: kafka.server.ZkConfigManager
    """

    def __init__(
        self, admin_zk_client: AdminZkClient, handlers: Mapping[str, ConfigHandler]
    ) -> None:
        self._admin_zk_client = admin_zk_client
        self._handlers = handlers

    def listen(self, zk_client: KafkaZkClient, time: Time) -> ZkNodeChangeNotificationListener:
        """Follows every change from now on, on a thread of its own, until closed."""
        listener = ZkNodeChangeNotificationListener(
            zk_client,
            ConfigEntityChangeNotificationZNode.path,
            ConfigEntityChangeNotificationSequenceZNode.sequence_number_prefix,
            lambda data: self.process_entity_path(
                ConfigEntityChangeNotificationSequenceZNode.decode(data)
            ),
            time=time,
        )
        listener.init()
        return listener

    def process_entity_path(self, entity_path: str) -> None:
        """`entity_path` is a notification's, such as topics/orders or brokers/0."""
        entity_type, _, entity_name = entity_path.partition("/")
        handler = self._handlers.get(entity_type)
        if handler is None or not entity_name:
            log.warning("A configuration change of %s is not for this broker", entity_path)
            return
        properties = self._admin_zk_client.fetch_entity_config(entity_type, entity_name)
        log.info("Configuration of %s %s is now %s", entity_type, entity_name, properties)
        handler.process_config_changes(entity_name, properties)
