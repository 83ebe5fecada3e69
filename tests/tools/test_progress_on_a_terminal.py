"""Long work shows how far it is on a terminal, and says nothing of it in a pipe."""

import os
import pty
import subprocess
import sys

from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic

_RECORDS = 300


def _command(broker: Broker, topic: str) -> list[str]:
    module = "kafkapy.tools.kafka_e2e_latency"
    return [sys.executable, "-P", "-m", module, broker.bootstrap, topic, str(_RECORDS), "1", "20"]


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(
    broker: Broker, make_topic: MakeTopic
) -> None:
    terminal, side = pty.openpty()
    try:
        # A terminal holds a few kilobytes for a reader who comes late, which this is less than.
        done = subprocess.run(
            _command(broker, make_topic()), stdout=subprocess.PIPE, stderr=side, timeout=60
        )
        os.close(side)
        shown = os.read(terminal, 100_000).decode()
    finally:
        os.close(terminal)

    assert done.returncode == 0, shown
    assert f" of {_RECORDS} (" in shown
    assert shown.endswith("\r\x1b[K")


def test_progress_is_not_shown_in_a_pipe(broker: Broker, make_topic: MakeTopic) -> None:
    done = subprocess.run(_command(broker, make_topic()), capture_output=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")
