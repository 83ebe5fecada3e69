"""A topic read by kafka-python in a loop, in a process of its own: prints the rows a second.

    python -m tests.benchmarks.plain_loop 127.0.0.1:9092 topic 3.0 [FILE]

What somebody writes who has no Spark: `for record in consumer`, all partitions, for so many
seconds; the topic must hold more than that. With a file, each record becomes the row that Spark
would make of it, and the rows a parquet file.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

# Clocks are not free: so many records are read between two looks at one. Also the rows that are
# kept before they are written.
_RECORDS_A_LOOK = 10_000


def _count(records: Iterator[Any]) -> int:
    count = 0
    for _ in islice(records, _RECORDS_A_LOOK):
        count += 1
    return count


class _ParquetFile:
    """Rows as Spark's connector has them. Not thread-safe."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        self._pa = pa
        self._schema = pa.schema(
            [
                ("key", pa.binary()),
                ("value", pa.binary()),
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("ms")),
                ("timestampType", pa.int32()),
            ]
        )
        self._writer = ParquetWriter(path, self._schema)

    def write(self, records: Iterator[Any]) -> int:
        rows = [
            (r.key, r.value, r.topic, r.partition, r.offset, r.timestamp, r.timestamp_type)
            for r in islice(records, _RECORDS_A_LOOK)
        ]
        arrays = [
            self._pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        self._writer.write_batch(self._pa.record_batch(arrays, schema=self._schema))
        return len(rows)

    def close(self) -> None:
        self._writer.close()


def main(arguments: list[str]) -> int:
    servers, topic, seconds = arguments[:3]
    warnings.simplefilter("ignore")
    from kafka import KafkaConsumer

    file = _ParquetFile(arguments[3]) if len(arguments) > 3 else None
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        next(consumer)  # partitions are found, connections open
        take = _count if file is None else file.write
        rows = 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < float(seconds):
            rows += take(consumer)
        if file is not None:
            file.close()
        taken_s = time.perf_counter() - begun
    print(rows / taken_s)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
