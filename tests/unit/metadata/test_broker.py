import pytest

from kafkapy.common.errors import BrokerNotAvailableError
from kafkapy.metadata.broker import Broker, Node
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol

BROKER = Broker(
    3,
    (
        EndPoint("CLIENT", SecurityProtocol.PLAINTEXT, "outside", 9092),
        EndPoint("INTERNAL", SecurityProtocol.SSL, "inside", 9093),
    ),
    rack="r",
)


def test_node_is_the_broker_seen_from_a_listener() -> None:
    assert BROKER.node("INTERNAL") == Node(3, "inside", 9093, "r")


def test_missing_listener() -> None:
    assert BROKER.get_node("OTHER") is None
    with pytest.raises(BrokerNotAvailableError, match="OTHER"):
        BROKER.node("OTHER")


def test_epoch_takes_no_part_in_equality() -> None:
    assert Broker(1, (), epoch=5) == Broker(1, (), epoch=6)
    assert {Broker(1, (), epoch=5): 0}[Broker(1, ())] == 0
