import json
from uuid import UUID

import pytest

from kafkapy.common.types import TopicPartition, uuid_to_base64
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset

A, B = UUID(int=7), UUID(int=8)
OFFSET = KafkaSourceOffset(
    {
        TopicPartition("orders", 10): 3,
        TopicPartition("orders", 2): 1,
        TopicPartition("bills", 0): 0,
    },
    {"orders": A, "bills": B},
)


def test_the_text_is_in_order_and_is_read_back() -> None:
    text = json.dumps(OFFSET.to_json())

    a, b = uuid_to_base64(A), uuid_to_base64(B)
    assert text == (
        f'{{"topics": {{"bills": {{"id": "{b}", "offsets": {{"0": 0}}}}, '
        f'"orders": {{"id": "{a}", "offsets": {{"2": 1, "10": 3}}}}}}}}'
    )
    assert KafkaSourceOffset.from_json(json.loads(text)) == OFFSET
    assert KafkaSourceOffset.from_json({"topics": {}}) == KafkaSourceOffset({}, {})


def test_a_checkpoint_of_the_official_connector_is_read_without_ids() -> None:
    found = KafkaSourceOffset.from_json({"orders": {"0": 5}, "topics": {"1": 2}})

    assert found.offsets == {TopicPartition("orders", 0): 5, TopicPartition("topics", 1): 2}
    assert not found.is_other_topic("orders", OFFSET)


def test_one_topic_named_topics_is_no_checkpoint_of_ours() -> None:
    found = KafkaSourceOffset.from_json({"topics": {"1": 2}})

    assert found.offsets == {TopicPartition("topics", 1): 2}


def test_a_topic_made_anew_is_another_topic() -> None:
    later = KafkaSourceOffset(OFFSET.offsets, {"orders": B, "bills": B})

    assert OFFSET.is_other_topic("orders", later)
    assert not OFFSET.is_other_topic("bills", later)
    assert not OFFSET.is_other_topic("elsewhere", later)


@pytest.mark.parametrize(
    "value",
    [
        {"orders": 5},
        {"orders": {"x": 5}},
        {"index": 3},
        {"topics": {"orders": {"id": "?", "offsets": {"0": 1}}}},
        {"topics": {"orders": {"id": uuid_to_base64(A), "offsets": [1]}}},
    ],
)
def test_another_sources_checkpoint_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="not of this source"):
        KafkaSourceOffset.from_json(value)
