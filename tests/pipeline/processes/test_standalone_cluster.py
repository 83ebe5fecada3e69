"""The same job on a cluster: master and workers of their own, submitted by spark-submit."""

import subprocess
from pathlib import Path

import pyarrow.dataset
import pytest

from kafkapy.clients.producer import KafkaProducer
from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.spark_cluster import running_cluster, spark_environment
from tests.helpers.waiting import wait_until
from tests.pipeline.conftest import MakeTopic

ROWS = 6_000
JOB = Path(__file__).with_name("cluster_job.py")
_JOB_TIMEOUT_S = 120


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_submitted_job_survives_the_death_of_a_worker(
    tmp_path: Path, spark_broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    source, destination = make_topic(2), make_topic(3)
    expected = [(f"k{n}".encode(), f"value {n}".encode()) for n in range(ROWS)]
    with KafkaProducer(bootstrap_servers=spark_broker.bootstrap_servers) as producer:
        for key, value in expected:
            producer.send(source, value, key=key)

    with running_cluster(tmp_path, workers=2) as cluster:
        command = cluster.submit_command(
            JOB, spark_broker.bootstrap_servers, source, destination, str(tmp_path), conf={}
        )
        with (tmp_path / "job.txt").open("w+") as output:
            job = subprocess.Popen(
                command,
                env=spark_environment(),
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                # Both workers have begun a task, and most of the tasks are still to be done.
                wait_until(
                    lambda: len(list(tmp_path.glob("task-*"))) >= 3 or job.poll() is not None,
                    _JOB_TIMEOUT_S,
                    pause=0.02,
                )
                cluster.workers[0].kill()
                code = job.wait(_JOB_TIMEOUT_S)
            finally:
                job.kill()
                job.wait()
            output.seek(0)
            said = output.read()

    assert code == 0, said[-5000:]
    assert "Lost executor" in said, said[-5000:]
    table = pyarrow.dataset.dataset(tmp_path / "parquet").to_table(columns=["key", "value"])
    archived = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    assert sorted(archived) == sorted(expected)
    written = [(record.key, record.value) for record in spark_broker.records(destination)]
    assert sorted(written) == sorted(expected)
