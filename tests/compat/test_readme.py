import re
import subprocess
import sys
from pathlib import Path

from tests.compat.brokers import Broker

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_of_the_readme_works_as_it_stands(broker: Broker) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", example.replace("127.0.0.1:9092", broker.bootstrap)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "topic='greetings'" in done.stdout
    assert done.stdout.splitlines()[-1] == "b'hello'"
