"""A job on a cluster whose workers are killed and replaced while it runs."""

import subprocess
from pathlib import Path
from typing import IO
from uuid import uuid4

import pyarrow.dataset

from kafkapy.clients.producer import KafkaProducer
from kafkapy.testing.broker_handle import BrokerHandle
from kafkapy.testing.topic_reader import IsolationLevel
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.spark_cluster import SparkCluster, running_cluster, spark_environment
from tests.helpers.waiting import wait_until

_JOB = Path(__file__).with_name("cluster_job.py")
_TASKS_A_KILL = 6
_ROWS_A_TASK = 250
# Of tasks begun since the last kill: both workers are busy, and most of the work is to be done.
_TASKS_BEFORE_A_KILL = 3
_TIMEOUT_S = 120
# However often a task's executor dies, it is tried again.
_CONF = {"spark.task.maxFailures": "100", "spark.executor.maxNumFailures": "1000"}


def survive_worker_kills(directory: Path, broker: BrokerHandle, kills: int) -> int:
    """How many rows reached both ends, each once."""
    tasks = _TASKS_A_KILL * (kills + 1)
    source, destination = (f"{name}-{uuid4().hex[:12]}" for name in ("source", "destination"))
    broker.create_topic(source, partitions=2)
    broker.create_topic(destination, partitions=3)
    expected = [(b"k%d" % n, b"value %d" % n) for n in range(tasks * _ROWS_A_TASK)]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for key, value in expected:
            producer.send(source, value, key=key)

    with running_cluster(directory, workers=2) as cluster:
        arguments = (broker.bootstrap_servers, source, destination, str(tasks), str(directory))
        command = cluster.submit_command(_JOB, *arguments, conf=_CONF)
        with (directory / "job.txt").open("w+") as output:
            code = _run(command, output, cluster, directory, kills=kills)
            output.seek(0)
            said = output.read()

    assert code == 0, said[-5000:]
    assert said.count("Lost executor") >= kills, said[-5000:]
    table = pyarrow.dataset.dataset(directory / "parquet").to_table(columns=["key", "value"])
    archived = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    assert sorted(archived) == sorted(expected)
    await_ended_transactions(broker.bootstrap_servers)
    written = broker.records(destination, isolation=IsolationLevel.READ_COMMITTED)
    assert sorted((record.key, record.value) for record in written) == sorted(expected)
    return len(expected)


def _run(
    command: list[str], output: IO[str], cluster: SparkCluster, directory: Path, *, kills: int
) -> int:
    job = subprocess.Popen(
        command,
        env=spark_environment(),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )

    def begun() -> int:
        return len(list(directory.glob("task-*")))

    try:
        for number in range(kills):
            enough = begun() + _TASKS_BEFORE_A_KILL
            wait_until(
                lambda enough=enough: begun() >= enough or job.poll() is not None,
                _TIMEOUT_S,
                pause=0.02,
            )
            cluster.workers[0].kill()
            if number + 1 < kills:
                cluster.replace_dead_workers()
        return job.wait(_TIMEOUT_S)
    finally:
        job.kill()
        job.wait()
