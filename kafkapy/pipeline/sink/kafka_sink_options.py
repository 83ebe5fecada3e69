"""The options of the sink."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.client_channel_builder import client_channel_builder
from kafkapy.clients.producer import KafkaProducer
from kafkapy.clients.producer.producer_config import ProducerConfig, parse_producer_config
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.pipeline.kafka_client_options import PREFIX, KafkaClientOptions, option_error
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.utils.time import SystemTime

TOPIC = "topic"
EXACTLY_ONCE = "exactlyOnce"
TRANSACTIONAL_ID_PREFIX = "transactionalIdPrefix"
DEFAULT_TRANSACTIONAL_ID_PREFIX = "kafkapy-sink"
TRANSACTION_TIMEOUT = "transaction.timeout.ms"

_OWN = (TOPIC, EXACTLY_ONCE, TRANSACTIONAL_ID_PREFIX)
_TRANSACTIONAL_ID = "transactional.id"
# The longest that brokers allow unless told otherwise: a transaction is open from the first row of
# its task until the slowest task has ended, and over a restart of the driver.
_TRANSACTION_TIMEOUT_MS = 900_000
# Tasks send as fast as they can and flush at their end: nobody waits for a batch to be filled, and
# large ones cost producer and broker less (a quarter of the time, with rows of 100 bytes).
_BATCHING = {"linger.ms": "20", "batch.size": "131072"}
_BOOLEANS = {"true": True, "false": False}
_SIMILAR = 0.85


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the user said about the sink. Immutable and picklable.

    Ports: org.apache.spark.sql.kafka010.KafkaSourceProvider
    """

    topic: str | None
    exactly_once: bool
    transactional_id_prefix: str
    clients: KafkaClientOptions

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SinkOptions:
        """OptionError names an option that is missing, wrong, or probably another one."""
        # Spark's options do not tell upper from lower case.
        given = {name.lower(): value for name, value in options.items()}
        _refuse_misspelt(given)
        topic = given.get(TOPIC.lower())
        if topic is not None:
            topic = topic.strip()
        if topic == "":
            raise OptionError(TOPIC, "must not be empty")
        made = cls(
            topic=topic,
            exactly_once=_boolean(EXACTLY_ONCE, given.get(EXACTLY_ONCE.lower(), "false")),
            transactional_id_prefix=given.get(
                TRANSACTIONAL_ID_PREFIX.lower(), DEFAULT_TRANSACTIONAL_ID_PREFIX
            ),
            clients=KafkaClientOptions.for_sink(given),
        )
        made._check()
        return made

    def open_producer(self, **settings: Any) -> KafkaProducer:
        """With the user's settings; `settings` are the sink's own."""
        try:
            return KafkaProducer(properties=self._producer_properties(), **settings)
        except InvalidConfigurationError as error:
            raise option_error(error) from error

    def open_admin(self) -> AdminClient:
        try:
            return AdminClient(properties=self.clients.properties_for(AdminClientConfig))
        except InvalidConfigurationError as error:
            raise option_error(error) from error

    def _producer_properties(self) -> dict[str, str]:
        properties = {**_BATCHING, **self.clients.properties_for(ProducerConfig)}
        if self.exactly_once:
            properties.setdefault(TRANSACTION_TIMEOUT, str(_TRANSACTION_TIMEOUT_MS))
        return properties

    def _check(self) -> None:
        if not self.transactional_id_prefix:
            raise OptionError(TRANSACTIONAL_ID_PREFIX, "must not be empty")
        if _TRANSACTIONAL_ID in self.clients.properties:
            raise OptionError(
                f"{PREFIX}{_TRANSACTIONAL_ID}",
                f"set {EXACTLY_ONCE}, and {TRANSACTIONAL_ID_PREFIX} if the ids shall begin with it:"
                " each task needs an id of its own",
            )
        settings = {"transactional_id": self.transactional_id_prefix} if self.exactly_once else {}
        try:
            config = parse_producer_config(self._producer_properties(), settings)
            # A certificate that is not there should not be each task's to find out.
            client_channel_builder(config, SystemTime(), client_id=config.client_id)
        except InvalidConfigurationError as error:
            raise option_error(error) from error


def _refuse_misspelt(given: Mapping[str, str]) -> None:
    own = {name.lower(): name for name in _OWN}
    for option in given:
        near = difflib.get_close_matches(option, own, n=1, cutoff=_SIMILAR)
        if near and option not in own:
            raise OptionError(option, f"unknown; is {own[near[0]]} meant?")


def _boolean(option: str, value: str) -> bool:
    try:
        return _BOOLEANS[value.strip().lower()]
    except KeyError:
        raise OptionError(option, f"must be true or false, not {value!r}") from None
