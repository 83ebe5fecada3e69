import signal

import pytest

from kafkapy.tools.termination import DeferredTermination


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
