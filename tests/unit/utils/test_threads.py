import logging
import threading

from kafkapy.utils.log_context import LogContext
from kafkapy.utils.threads import ShutdownableThread
from tests.helpers.waiting import wait_until


class Worker(ShutdownableThread):
    def __init__(self, work, **kwargs) -> None:
        super().__init__("worker", **kwargs)
        self._work = work

    def do_work(self) -> None:
        self._work(self)


def test_work_is_repeated_until_shutdown():
    rounds = []

    def work(thread):
        rounds.append(threading.current_thread().name)
        thread.pause(1)

    thread = Worker(work)
    thread.start()
    wait_until(lambda: len(rounds) >= 3)
    thread.shutdown()

    assert set(rounds) == {"worker"}
    assert thread.is_shutdown_complete
    assert not thread.is_failed
    assert not thread.is_alive()


def test_pause_ends_at_shutdown():
    thread = Worker(lambda thread: thread.pause(60_000))
    thread.start()

    assert thread.initiate_shutdown() is True
    assert thread.initiate_shutdown() is False
    thread.await_shutdown()

    assert not thread.is_alive()


def test_failure_is_logged_and_reported(caplog):
    failures = []

    def fail(thread):
        raise ValueError("broken worker")

    thread = Worker(fail, on_failure=failures.append)
    thread.start()
    thread.await_shutdown()

    assert thread.is_failed
    assert [str(failure) for failure in failures] == ["broken worker"]
    assert "broken worker" in caplog.text


def test_thread_that_was_never_started_can_be_shut_down():
    thread = Worker(lambda thread: None)

    thread.shutdown()

    assert not thread.is_running


def test_log_context_puts_its_prefix_before_every_line(caplog):
    logger = LogContext("[100% broker 1] ").logger("kafkapy.test")

    with caplog.at_level(logging.INFO, "kafkapy.test"):
        logger.info("with %s", "arguments")
        logger.warning("without, 5% of them")

    assert [record.getMessage() for record in caplog.records] == [
        "[100% broker 1] with arguments",
        "[100% broker 1] without, 5% of them",
    ]
