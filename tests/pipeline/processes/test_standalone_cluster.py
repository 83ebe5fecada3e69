"""The same job on a cluster: master and workers of their own, submitted by spark-submit."""

from pathlib import Path

import pytest

from kafkapy.testing.broker_process import BrokerProcess
from tests.pipeline.processes.worker_kills import survive_worker_kills


@pytest.mark.slow
def test_a_submitted_job_survives_the_death_of_a_worker(
    tmp_path: Path, spark_broker: BrokerProcess
) -> None:
    assert survive_worker_kills(tmp_path, spark_broker, kills=1) == 3_000
