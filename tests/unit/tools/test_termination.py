import signal
from collections.abc import Iterator

import pytest

from kafkapy.tools.termination import DeferredTermination


@pytest.fixture(autouse=True)
def signals_of_a_foreground_job() -> Iterator[None]:
    """The tests themselves may run in the background, where SIGINT is ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_job_in_the_background_goes_on_ignoring_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    with DeferredTermination() as termination:
        signal.raise_signal(signal.SIGINT)
        termination.raise_if_asked()

    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_signal_is_raised_where_the_command_says() -> None:
    with DeferredTermination() as termination:
        termination.raise_if_asked()
        signal.raise_signal(signal.SIGTERM)

        with pytest.raises(SystemExit) as ended:
            termination.raise_if_asked()

    assert ended.value.code == 143


def test_a_second_signal_does_not_wait() -> None:
    with DeferredTermination():
        signal.raise_signal(signal.SIGTERM)

        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGINT)


def test_a_signal_interrupts_what_may_be_interrupted() -> None:
    with (
        DeferredTermination() as termination,
        pytest.raises(KeyboardInterrupt),
        termination.interruptible(),
    ):
        signal.raise_signal(signal.SIGINT)


def test_what_may_be_interrupted_is_not_begun_after_a_signal() -> None:
    begun = []
    with DeferredTermination() as termination:
        signal.raise_signal(signal.SIGTERM)

        with pytest.raises(SystemExit), termination.interruptible():
            begun.append(True)

    assert begun == []


def test_signals_are_noted_again_after_what_may_be_interrupted() -> None:
    with DeferredTermination() as termination:
        with termination.interruptible():
            pass

        signal.raise_signal(signal.SIGTERM)

        with pytest.raises(SystemExit):
            termination.raise_if_asked()


def test_handlers_are_as_before_at_the_end() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    with DeferredTermination():
        assert signal.getsignal(signal.SIGTERM) is not before[0]

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
