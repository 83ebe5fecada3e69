import threading
from collections.abc import Callable

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.server.auto_topic_creation import AutoTopicCreationManager, TopicErrors


class Creator:
    """Stands for AdminManager; answers what the test says."""

    def __init__(self) -> None:
        self.created: list[CreateTopicsRequest.CreatableTopic] = []
        self.error = Errors.REQUEST_TIMED_OUT
        self.before_answer: Callable[[], None] = lambda: None

    def create_topics_without_waiting(
        self, topics: list[CreateTopicsRequest.CreatableTopic]
    ) -> TopicErrors:
        self.created += topics
        self.before_answer()
        return {topic.name: (self.error, None) for topic in topics}


@pytest.fixture
def creator() -> Creator:
    return Creator()


def _manager(creator: Creator, *, is_controller_active: bool = True) -> AutoTopicCreationManager:
    return AutoTopicCreationManager(
        creator,
        GroupCoordinatorConfig(offsets_topic_num_partitions=7, offsets_topic_replication_factor=2),
        TransactionCoordinatorConfig(),
        num_partitions=4,
        replication_factor=1,
        is_controller_active=lambda: is_controller_active,
    )


def test_a_topic_is_created_with_the_brokers_defaults(creator: Creator) -> None:
    errors = _manager(creator).create_topics(["t"])

    assert errors == {"t": Errors.LEADER_NOT_AVAILABLE}
    (topic,) = creator.created
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("t", 4, 1)
    assert topic.configs == []


def test_the_offsets_topic_has_settings_of_its_own(creator: Creator) -> None:
    _manager(creator).create_topics([CONSUMER_OFFSETS_TOPIC])

    (topic,) = creator.created
    assert (topic.num_partitions, topic.replication_factor) == (7, 2)
    assert {config.name: config.value for config in topic.configs}["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    "error", [Errors.NONE, Errors.TOPIC_ALREADY_EXISTS, Errors.REQUEST_TIMED_OUT]
)
def test_a_client_is_told_to_try_again_while_the_topic_comes_into_being(
    creator: Creator, error: Errors
) -> None:
    creator.error = error

    assert _manager(creator).create_topics(["t"]) == {"t": Errors.LEADER_NOT_AVAILABLE}


@pytest.mark.parametrize(
    "error", [Errors.INVALID_REPLICATION_FACTOR, Errors.INVALID_TOPIC_EXCEPTION]
)
def test_a_failure_is_told(creator: Creator, error: Errors) -> None:
    creator.error = error

    assert _manager(creator).create_topics(["t"]) == {"t": error}


@pytest.mark.parametrize("name", ["", "..", "not legal"])
def test_an_illegal_name_is_not_tried(creator: Creator, name: str) -> None:
    errors = _manager(creator).create_topics([name, "legal"])

    assert errors[name] is Errors.INVALID_TOPIC_EXCEPTION
    assert [topic.name for topic in creator.created] == ["legal"]


def test_the_topic_of_transactions_has_settings_of_its_own(creator: Creator) -> None:
    _manager(creator).create_topics([TRANSACTION_STATE_TOPIC])

    (topic,) = creator.created
    assert (topic.num_partitions, topic.replication_factor) == (50, 3)
    configs = {config.name: config.value for config in topic.configs}
    assert (configs["cleanup.policy"], configs["min.insync.replicas"]) == ("compact", "2")


def test_nothing_is_created_without_a_controller(creator: Creator) -> None:
    errors = _manager(creator, is_controller_active=False).create_topics(["t"])

    assert errors == {"t": Errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert creator.created == []


def test_a_topic_in_the_making_is_not_made_twice(creator: Creator) -> None:
    manager = _manager(creator)
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert go_on.wait(10)

    creator.before_answer = hold
    first = threading.Thread(target=manager.create_topics, args=(["t"],))
    first.start()
    assert inside.wait(10)

    second = manager.create_topics(["t"])
    go_on.set()
    first.join()

    assert second == {"t": Errors.LEADER_NOT_AVAILABLE}
    assert len(creator.created) == 1


def test_a_topic_can_be_tried_again_after_a_failure(creator: Creator) -> None:
    manager = _manager(creator)

    def fail() -> None:
        raise RuntimeError

    creator.before_answer = fail
    with pytest.raises(RuntimeError):
        manager.create_topics(["t"])
    creator.before_answer = lambda: None

    manager.create_topics(["t"])

    assert len(creator.created) == 2
