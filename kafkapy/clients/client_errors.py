"""Errors that clients raise by themselves; those of brokers are in kafkapy.common.errors."""

from kafkapy.common.errors import KafkaError, RetriableError


class IllegalStateError(KafkaError):
    """The client is not in a state in which this may be done, as after it was closed.

    Ports: java.lang.IllegalStateException
    """


class ConcurrentModificationError(KafkaError):
    """Two threads use a client that is for one at a time.

    Ports: java.util.ConcurrentModificationException
    """


class WakeupError(KafkaError):
    """Another thread ended the wait.

    Ports: org.apache.kafka.common.errors.WakeupException
    """


class SerializationError(KafkaError):
    """A key or value could not be turned into bytes, or back.

    Ports: org.apache.kafka.common.errors.SerializationException
    """


class DisconnectError(RetriableError):
    """The connection ended before the response came.

    Ports: org.apache.kafka.common.errors.DisconnectException
    """
