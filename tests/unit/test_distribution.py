import pytest

from tests.helpers.distribution import rank_of, scope_of


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/unit/a/test_x.py::test_1", "tests/unit/a/test_x.py"),
        ("tests/unit/a/test_x.py::test_1[a::b]", "tests/unit/a/test_x.py"),
        ("tests/pipeline/test_x.py::test_1", "tests/pipeline"),
        ("tests/pipeline/processes/test_x.py::test_1", "tests/pipeline/processes/test_x.py"),
        ("tests/test_layout.py::test_1", "tests/test_layout.py"),
    ],
)
def test_tests_of_a_file_stay_together_and_those_that_share_a_spark(test: str, scope: str) -> None:
    assert scope_of(test) == scope


def test_long_tests_are_handed_out_first() -> None:
    tests = ["tests/test_layout.py::a", "tests/unit/x.py::a", "tests/pipeline/x.py::a"]

    assert sorted(tests, key=rank_of) == [tests[2], tests[1], tests[0]]
