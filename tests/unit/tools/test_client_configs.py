import pytest

from kafkapy.tools.client_configs import java_double


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024, "1024.0"),
        (50.5, "50.5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (1e30, "1.0E30"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-2.5e8, "-2.5E8"),
    ],
)
def test_numbers_are_written_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text
