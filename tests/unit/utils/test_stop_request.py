import subprocess
import sys

from kafkapy.utils.stop_request import StopRequest

# Signals at every point of the waiting; a lock that is not reentrant stops this within moments.
_STORM = """
import os, signal, sys, threading
from kafkapy.utils.stop_request import StopRequest

request, count = StopRequest(), 3000
signal.signal(signal.SIGTERM, lambda *_: request.ask())
sys.setswitchinterval(1e-5)

def storm():
    while waited < count:
        os.kill(os.getpid(), signal.SIGTERM)

waited = 0
thread = threading.Thread(target=storm)
thread.start()
while waited < count:
    assert request.wait() is None
    waited += 1
thread.join()
print("survived")
"""


def test_the_first_reason_is_the_one_given() -> None:
    request = StopRequest()

    request.ask("the disk failed")
    request.ask()

    assert request.wait() == "the disk failed"


def test_that_somebody_asked_is_known_without_taking_the_reason() -> None:
    request = StopRequest()
    assert not request.is_asked(within_s=0)

    request.ask("the disk failed")

    assert request.is_asked(within_s=60)
    assert request.is_asked(within_s=0)
    assert request.wait() == "the disk failed"


def test_signals_in_the_middle_of_waiting_do_not_lock_it_up() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STORM], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "survived\n", done.stderr
