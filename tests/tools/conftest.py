"""A broker for the tests of commands, topics in it, and Kafka's own commands."""

from tests.compat.conftest import (  # noqa: F401
    apache,
    broker,
    make_topic,
    neutral_admin,
    topic_name,
)
