"""What the user of a data source or of a pipeline is told.

Spark carries an exception from a Python worker to the user as text, so each message says by itself
which option, column, topic, partition or offset is at fault.
"""

from __future__ import annotations


class PipelineError(Exception):
    """Something is wrong that the user can put right; the message is all they need for it."""


class OptionError(PipelineError):
    """An option of a data source, or a setting of a pipeline's file, cannot be used."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        return OptionError, (self.option, self.reason)


class SchemaError(PipelineError):
    """A column is missing, unknown or of a type that it cannot have."""


class DataLossError(PipelineError):
    """Records that were to be read are no longer there."""


class CorruptDataError(PipelineError):
    """Stored bytes are not what was once written."""
