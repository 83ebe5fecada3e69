"""What an application gives to a client, checked before a request is made of it.

One that cannot be written is never answered; and since a client asks for the metadata of all its
topics together, a single name that cannot be written would keep it from hearing of any of them.
"""

from typing import Any, Final

from kafkapy.common.errors import InvalidTopicError

# The largest offset or time that a request can carry.
MAX_INT64: Final = 2**63 - 1


def check_topic(topic: Any) -> None:
    if not isinstance(topic, str):
        raise TypeError(f"a topic is a str, not {topic!r}")
    if any("\ud800" <= char <= "\udfff" for char in topic):
        raise InvalidTopicError(f"The topic name {topic!r} is not legal")
