import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from kafkapy.pipeline.jobs.progress.pipeline_metrics import PipelineMetrics
from kafkapy.pipeline.pipeline_errors import OptionError
from tests.helpers.query_progress import ARCHIVE, BEGAN_MS, partition, progress


@pytest.fixture
def metrics() -> Iterator[PipelineMetrics]:
    made = PipelineMetrics()
    yield made
    made.close()
    made.close()


def value(metrics: PipelineMetrics, name: str, **labels: str) -> float | None:
    full_name = f"kafkapy_pipeline_{name}"
    return metrics.registry.get_sample_value(full_name, {"query": "archive"} | labels)


def test_a_scrape_gets_what_the_queries_did(metrics: PipelineMetrics) -> None:
    metrics.on_started(ARCHIVE)
    metrics.on_progress(progress(0))
    port = metrics.serve("127.0.0.1", 0)

    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()

    assert 'kafkapy_pipeline_rows_total{query="archive"} 1000.0' in lines
    assert 'kafkapy_pipeline_lag{partition="0",query="archive",topic="orders"} 300.0' in lines


def test_counts_go_up_and_gauges_show_the_last_batch(metrics: PipelineMetrics) -> None:
    metrics.on_progress(progress(0, dead_letters=2, late_rows=1))
    metrics.on_progress(progress(1, rows_out=None, state_rows=9, watermark_ms=5000))

    assert value(metrics, "rows_total") == 2000
    assert value(metrics, "output_rows_total") == 990
    assert value(metrics, "dead_letters_total") == 2
    assert value(metrics, "late_rows_total") == 1
    assert value(metrics, "batch_duration_seconds_count") == 2
    assert value(metrics, "batch_duration_seconds_sum") == 2.0
    assert value(metrics, "last_batch_phase_seconds", phase="walCommit") == 0.15
    assert value(metrics, "input_rows_per_second") == 950
    assert value(metrics, "processed_rows_per_second") == 1000
    assert value(metrics, "last_batch_id") == 1
    assert value(metrics, "last_batch_timestamp_seconds") == (BEGAN_MS + 2000) / 1000
    assert value(metrics, "state_rows") == 9
    assert value(metrics, "watermark_timestamp_seconds") == 5


def test_a_lag_that_is_not_known_is_not_shown(metrics: PipelineMetrics) -> None:
    metrics.on_progress(progress(0, partitions=(partition(0, None), partition(1, 4))))

    assert value(metrics, "lag", topic="orders", partition="0") is None
    assert value(metrics, "lag", topic="orders", partition="1") == 4


def test_rates_are_nothing_while_a_query_waits(metrics: PipelineMetrics) -> None:
    metrics.on_progress(progress(0))
    metrics.on_idle(ARCHIVE)

    assert value(metrics, "input_rows_per_second") == 0
    assert value(metrics, "processed_rows_per_second") == 0


@pytest.mark.parametrize(("error", "failures"), [(None, 0), ("no broker", 1)])
def test_a_query_is_active_until_it_ends(
    metrics: PipelineMetrics, error: str | None, failures: int
) -> None:
    metrics.on_started(ARCHIVE)
    assert value(metrics, "query_active") == 1

    metrics.on_terminated(ARCHIVE, error)
    assert value(metrics, "query_active") == 0
    assert value(metrics, "query_failures_total") == failures


def test_two_pipelines_of_one_process_have_metrics_of_their_own(metrics: PipelineMetrics) -> None:
    other = PipelineMetrics()

    metrics.on_progress(progress(0))

    assert value(other, "rows_total") is None


def test_a_port_that_is_taken_is_named(metrics: PipelineMetrics) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = rf"metrics port: cannot listen on 127\.0\.0\.1:{port}: Address already in use"

        with pytest.raises(OptionError, match=message):
            metrics.serve("127.0.0.1", port)


def test_every_metric_is_in_the_documentation(metrics: PipelineMetrics) -> None:
    document = (Path(__file__).parents[5] / "docs" / "pipeline-progress.md").read_text()
    kinds = {"counter": "_total"}
    names = {family.name + kinds.get(family.type, "") for family in metrics.registry.collect()}

    assert {name for name in names if f"`{name}`" not in document} == set()
    assert set(re.findall(r"`(kafkapy_pipeline_\w+)`", document)) == names
