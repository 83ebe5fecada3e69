"""A real broker inside tests, with its clock, its faults and its past in the test's hands.

The names below are imported when they are first used: pytest loads this package with its plugins,
also for tests that have nothing to do with Kafka.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkapy.testing.broker_handle import BrokerHandle, Checkpoint
    from kafkapy.testing.broker_process import BrokerProcess
    from kafkapy.testing.embedded_broker import EmbeddedBroker
    from kafkapy.testing.recorded_request import RecordedRequest
    from kafkapy.testing.topic_reader import IsolationLevel, StoredRecord

__all__ = [
    "BrokerHandle",
    "BrokerProcess",
    "Checkpoint",
    "EmbeddedBroker",
    "IsolationLevel",
    "RecordedRequest",
    "StoredRecord",
]

_MODULES = {
    "BrokerHandle": "broker_handle",
    "BrokerProcess": "broker_process",
    "Checkpoint": "broker_handle",
    "EmbeddedBroker": "embedded_broker",
    "IsolationLevel": "topic_reader",
    "RecordedRequest": "recorded_request",
    "StoredRecord": "topic_reader",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
