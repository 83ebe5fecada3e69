"""Calls between a test and the process of its broker."""

import socket
from multiprocessing.connection import Connection

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.testing.control_channel import ControlChannel


def test_a_call_to_a_side_that_has_gone_says_so_however_soon_it_comes() -> None:
    for _ in range(20):
        ours, theirs = socket.socketpair()
        channel = ControlChannel(Connection(ours.detach()), {})
        theirs.close()

        with pytest.raises(KafkaError, match="process has ended"):
            channel.call("checkpoint")

        channel.close()
