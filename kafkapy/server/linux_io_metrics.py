"""How much this process reads from and writes to disks, as Linux counts it."""

from pathlib import Path

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge

LINUX_DISK_READ_BYTES = Gauge(
    "kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
    "Bytes this process has had read from disk, caches not counted. Linux only.",
)
LINUX_DISK_WRITE_BYTES = Gauge(
    "kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
    "Bytes this process has had written towards disk. Linux only.",
)
_COUNTERS = Path("/proc/self/io")


def register_linux_io_metrics(metrics: MetricsRegistry) -> None:
    """Does nothing where the counters cannot be read.

    Ports: org.apache.kafka.server.metrics.LinuxIoMetricsCollector
    """
    try:
        _counter("read_bytes")
    except OSError:
        return
    metrics.gauge(LINUX_DISK_READ_BYTES, lambda: _counter("read_bytes"))
    metrics.gauge(LINUX_DISK_WRITE_BYTES, lambda: _counter("write_bytes"))


def _counter(name: str) -> int:
    for line in _COUNTERS.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value)
    raise OSError(f"{_COUNTERS} has no {name}")
