"""Rules for topic names.

Ports: org.apache.kafka.common.internals.Topic
"""

import re

from kafkapy.common.errors import InvalidTopicError

MAX_TOPIC_NAME_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """InvalidTopicError when no topic may have this name.

    The name is also that of a directory: the length leaves room for the partition and a suffix.
    """
    if not name:
        raise InvalidTopicError("A topic name must not be empty")
    if name in (".", ".."):
        raise InvalidTopicError(f"A topic cannot be named '{name}'")
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        raise InvalidTopicError(
            f"A topic name has at most {MAX_TOPIC_NAME_LENGTH} characters, not {len(name)}: {name}"
        )
    if _LEGAL.fullmatch(name) is None:
        raise InvalidTopicError(
            f"Topic name {name!r} contains other characters than ASCII letters, digits,"
            " '.', '_' and '-'"
        )


def has_collision_chars(name: str) -> bool:
    """Metric names turn '.' into '_': such a name may meet another topic's there."""
    return "." in name or "_" in name


def has_collision(first: str, second: str) -> bool:
    return first.replace(".", "_") == second.replace(".", "_")
