import pytest

from kafkapy.pipeline.jobs.failure_cause import failure_cause

_OURS = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
kafkapy.pipeline.pipeline_errors.DataLossError: orders-0: offset 5 is gone

\tat org.apache.spark.api.python.BasePythonRunner
=== Streaming Query ===
Identifier: q
"""
_CHAINED = """[PYTHON_DATA_SOURCE_ERROR] Failed
Traceback (most recent call last):
  File "a.py", line 1, in a
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in b
ValueError: boom at 3
 SQLSTATE: 38000
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (_OURS, "orders-0: offset 5 is gone"),
        (_CHAINED, "ValueError: boom at 3"),
        (
            "[USER_RAISED_EXCEPTION] source a: bad SQLSTATE: P0001\n=== Streaming Query ===\n",
            "source a: bad",
        ),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `x` cannot be resolved."
            " SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n",
            "A column `x` cannot be resolved. line 1 pos 7;",
        ),
        (
            "An error occurred while calling o1.save.\n: org.apache.SparkClassNotFoundException:"
            " [DATA_SOURCE_NOT_FOUND] Failed to find it. SQLSTATE: 42K02\n\tat a.b.C",
            "Failed to find it.",
        ),
        (
            "An error occurred while calling o1.start.\n: java.lang.NoSuchMethodError: 'void a.B()'"
            "\n\tat a.b.C",
            "java.lang.NoSuchMethodError: 'void a.B()'",
        ),
        ("org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] bad", "bad"),
        ("org.apache.SomeException: disk full\n\tat a.b.C", "org.apache.SomeException: disk full"),
    ],
)
def test_the_innermost_cause_is_one_line(text: str, cause: str) -> None:
    assert failure_cause(RuntimeError(text)) == cause


def test_an_error_without_words_is_named_by_its_type() -> None:
    assert failure_cause(KeyError()) == "KeyError"
