"""Makes the checkout's own virtual environment, once, and prints its Python.

Run by the launchers with any Python 3.11+ and only the standard library. A stamp named after
the hash of setup.cfg tells whether the installed set is still the declared one, so a second run
costs one file look-up. Two commands started at once wait for each other on a lock file.
"""

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


def main(extra: str) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before the right Python is known
        sys.exit(f"kafkapy needs Python 3.11 or newer, found {sys.version.split()[0]}")
    python = VENV / "bin" / "python"
    digest = hashlib.sha256((ROOT / "setup.cfg").read_bytes()).hexdigest()[:16]
    stamp = VENV / f".installed-{extra or 'core'}-{digest}"
    if not stamp.exists():
        VENV.mkdir(exist_ok=True)
        with open(VENV / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists():
                install(python, extra)
                stamp.touch()
    print(python)
    return 0


def install(python: Path, extra: str) -> None:
    print(f"kafkapy: setting up {VENV.relative_to(ROOT)} (once)", file=sys.stderr)
    if not python.exists():
        venv.create(VENV, with_pip=True)
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--editable", target], stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit("kafkapy: pip could not install what setup.cfg names (see above)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
