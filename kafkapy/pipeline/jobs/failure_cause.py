"""The one line that says what went wrong, out of Spark's texts with their traces."""

from __future__ import annotations

import re

from kafkapy.pipeline import pipeline_errors

_TRACEBACK = "Traceback (most recent call last):"
# Behind it Spark describes the query: offsets, thread, plan.
_QUERY_DESCRIPTION = "=== Streaming Query ==="
# What came from Java and is none of Spark's own exceptions begins with the call.
_PY4J = "An error occurred while calling "
# An error of Java itself, such as NoSuchMethodError, says little without its name.
_JAVA_ERROR = re.compile(r"^(?!java\.lang\.\w+Error: )[\w.$]+(?:Exception|Error): ")
_CAUSED_BY = "Caused by: "
# In front of Spark's own messages, with the Java class or without it.
_ERROR_CLASS = re.compile(r"^(?:[\w.$]+: )?\[[A-Z0-9_.]+\] +")
_SQL_STATE = re.compile(r" SQLSTATE: \w+;?")
_PYTHON_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_OURS = f"{pipeline_errors.__name__}."


def failure_cause(error: BaseException | str) -> str:
    """A Python trace ends with its exception, a Java one begins with it; the innermost counts."""
    text = str(error).partition(_QUERY_DESCRIPTION)[0]
    if _TRACEBACK in text:
        found = _python_error(text.rpartition(_TRACEBACK)[2])
        if found is not None:
            return found
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith(_PY4J):
        lines = [_JAVA_ERROR.sub("", line.removeprefix(": ")) for line in lines[1:]]
    if not lines:
        return type(error).__name__
    if lines[0].endswith(":"):
        causes = [line for line in lines if line.startswith(_CAUSED_BY)]
        lines = [
            _JAVA_ERROR.sub("", line.removeprefix(_CAUSED_BY)) for line in causes[-1:]
        ] or lines
    return _SQL_STATE.sub("", _ERROR_CLASS.sub("", lines[0]))


def _python_error(trace: str) -> str | None:
    """The first line after the frames, which are indented; without the name of our own types."""
    lines = trace.strip("\n").splitlines()
    for line in lines:
        if line and not line[0].isspace() and (match := _PYTHON_ERROR.match(line)):
            if match["type"].startswith(_OURS) and match["message"]:
                return match["message"]
            return line
    return None
