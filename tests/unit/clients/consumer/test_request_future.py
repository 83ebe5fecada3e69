"""Futures that are completed by polling."""

import pytest

from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.common.errors import KafkaError, NotCoordinatorError


def test_listeners_hear_of_success_before_and_after_it() -> None:
    future: RequestFuture[int] = RequestFuture()
    heard: list[object] = []
    future.add_listener(heard.append, heard.append)

    future.complete(3)
    future.add_listener(heard.append, heard.append)

    assert heard == [3, 3]
    assert future.value == 3 and future.succeeded and not future.failed


def test_listeners_hear_of_failure() -> None:
    future: RequestFuture[int] = RequestFuture()
    heard: list[object] = []
    future.add_listener(heard.append, heard.append)
    error = NotCoordinatorError("moved")

    future.fail(error)

    assert heard == [error]
    assert future.is_retriable and future.error is error
    with pytest.raises(ValueError, match="not succeeded"):
        future.value  # noqa: B018


def test_it_is_completed_once() -> None:
    future = RequestFuture.success(1)

    with pytest.raises(ValueError, match="already"):
        future.complete(2)
    with pytest.raises(ValueError, match="already"):
        future.fail(KafkaError())
    with pytest.raises(ValueError, match="not failed"):
        future.error  # noqa: B018


def test_composing_adapts_values_and_passes_errors_on() -> None:
    source: RequestFuture[int] = RequestFuture()
    text: RequestFuture[str] = source.compose(lambda value, future: future.complete(str(value)))
    source.complete(5)
    assert text.value == "5"

    failing: RequestFuture[int] = RequestFuture.failure(KafkaError("no"))
    passed: RequestFuture[str] = failing.compose(lambda value, future: future.complete(""))
    assert str(passed.error) == "no"


def test_a_chained_future_ends_the_same_way() -> None:
    source: RequestFuture[int] = RequestFuture()
    target: RequestFuture[int] = RequestFuture()
    source.chain(target)

    source.complete(9)

    assert target.value == 9
