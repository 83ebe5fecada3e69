"""What a program waits for before it can begin."""

import subprocess
import sys

import pytest

import kafkapy.clients.consumer
import kafkapy.clients.producer

_LOADED = """
import sys
import kafkapy.clients.admin
print(*(name for name in sys.modules if name.endswith((".kafka_consumer", ".kafka_producer"))))
"""


def test_admin_client_comes_without_consumer_and_producer() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )

    assert said.stdout.split() == []


@pytest.mark.parametrize("package", [kafkapy.clients.consumer, kafkapy.clients.producer])
def test_every_name_of_a_package_is_there_and_no_other(package) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        package.Nobody  # noqa: B018
