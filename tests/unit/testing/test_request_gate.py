"""The door between clients and handlers."""

from typing import Any

import pytest

from kafkapy.testing.request_gate import RequestGate


def test_requests_wait_while_the_gate_is_closed() -> None:
    gate, handled = RequestGate(), []
    request: Any = object()

    with gate.closed():
        gate.pass_through(handled.append, request)
        assert handled == []

    assert handled == [request]


def test_an_interrupt_while_it_closes_opens_the_gate_again(monkeypatch) -> None:
    gate, handled = RequestGate(), []
    request: Any = object()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate._changed, "wait_for", interrupt)
    with pytest.raises(KeyboardInterrupt), gate.closed():
        pass

    gate.pass_through(handled.append, request)
    assert handled == [request]
