"""Copies a topic exactly once: consumes, produces, sends offsets and commits, until it is killed.

    python -m tests.compat.transactional_copy bootstrap source target

java/TransactionalCopy.java is the same job. Both print a line, the number of records copied so far
by this process, after each commit.
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

NAME = "copy"
RECORDS_PER_TRANSACTION = 10
_WAIT_S = 20


def main(bootstrap: str, source: str, target: str) -> None:
    # A member with a name of its own takes its predecessor's place without a rebalance.
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": NAME,
            "group.instance.id": NAME,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": NAME, "linger.ms": 0})
    producer.init_transactions(_WAIT_S)
    consumer.subscribe([source])
    copied = 0
    while True:
        messages = consumer.consume(RECORDS_PER_TRANSACTION, timeout=0.5)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        positions = {m.partition(): m.offset() + 1 for m in messages}
        producer.send_offsets_to_transaction(
            [TopicPartition(source, partition, at) for partition, at in positions.items()],
            consumer.consumer_group_metadata(),
            _WAIT_S,
        )
        producer.commit_transaction(_WAIT_S)
        copied += len(messages)
        print(copied, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
