import pytest

from kafkapy.tools.text_table import print_table


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["Id", "State"], [["long-name", 7], ["b", "Ongoing"]])

    assert capsys.readouterr().out.splitlines() == [
        "Id       \tState  \t",
        "long-name\t7      \t",
        "b        \tOngoing\t",
    ]
