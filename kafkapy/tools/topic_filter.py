"""Topics by a pattern, as commands take it."""

from __future__ import annotations

import re

from kafkapy.common.command_line import fail
from kafkapy.common.types import INTERNAL_TOPICS


class TopicFilter:
    """The topics whose whole name matches; a comma in the pattern separates alternatives.

    Ports: org.apache.kafka.server.util.TopicFilter
    """

    def __init__(self, pattern: str) -> None:
        expression = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._expression = re.compile(expression)
        except re.error as e:
            fail(f"{pattern} is no regular expression: {e}")

    def allows(self, topic: str, *, exclude_internal: bool) -> bool:
        if exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._expression.fullmatch(topic) is not None
