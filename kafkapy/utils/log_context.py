"""Loggers whose lines say which broker, partition or thread they are about."""

import logging
from collections.abc import MutableMapping
from typing import Any


class LogContext:
    """A prefix shared by the loggers of one component. Immutable.

    Ports: org.apache.kafka.common.utils.LogContext
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def logger(self, name: str) -> logging.LoggerAdapter[logging.Logger]:
        return _PrefixAdapter(logging.getLogger(name), self.prefix)


class _PrefixAdapter(logging.LoggerAdapter[logging.Logger]):
    def __init__(self, logger: logging.Logger, prefix: str) -> None:
        super().__init__(logger, {})
        # The message is a %-format: a prefix holding a percent sign must not become a directive.
        self._prefix = prefix.replace("%", "%%")
        self._raw_prefix = prefix

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        return f"{self._prefix}{msg}", kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level):
            # Without arguments logging does not format, so the prefix goes in unescaped.
            text = f"{self._prefix if args else self._raw_prefix}{msg}"
            self.logger.log(level, text, *args, **kwargs)
