"""Kafka's own tools for leaders and replicas: kafka-leader-election, kafka-reassign-partitions."""

import json
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.compat.apache_tools import KafkaTool
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic

LEADER_ELECTION = "kafka-leader-election"
REASSIGN_PARTITIONS = "kafka-reassign-partitions"


def test_leader_election_finds_the_leader_in_place(
    broker: Broker, make_topic: MakeTopic, kafka_tool: KafkaTool
) -> None:
    topic = make_topic()

    printed = kafka_tool(
        LEADER_ELECTION,
        *("--bootstrap-server", broker.bootstrap, "--election-type", "preferred"),
        *("--topic", topic, "--partition", "0"),
    )

    assert f"Valid replica already elected for partitions {topic}-0" in printed


def test_reassignment_to_the_same_broker_is_complete_at_once(
    broker: Broker,
    make_topic: MakeTopic,
    neutral_admin: AdminClient,
    tmp_path: Path,
    kafka_tool: KafkaTool,
) -> None:
    topic = make_topic(partitions=2)
    (broker_id,) = neutral_admin.list_topics(timeout=10).brokers
    moves = [{"topic": topic, "partition": p, "replicas": [broker_id]} for p in range(2)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))

    def reassign(step: str) -> str:
        return kafka_tool(
            REASSIGN_PARTITIONS,
            *("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(plan), step),
        )

    executed, verified = reassign("--execute"), reassign("--verify")

    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in executed
    for partition in range(2):
        assert f"Reassignment of partition {topic}-{partition} is completed." in verified
