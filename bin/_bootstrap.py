"""Makes the checkout's own virtual environment, once, and prints its Python.

Run by the launchers with any Python 3.11+ and only the standard library. The setup.cfg that was
installed is kept in the environment: a launcher that finds it equal to the checkout's does not come
here. Two commands started at once wait for each other on a lock file.
"""

import fcntl
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CORE = "core"


def main(extra: str) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before the right Python is known
        sys.exit(f"kafkapy needs Python 3.11 or newer, found {sys.version.split()[0]}")
    python = VENV / "bin" / "python"
    declared, installed = ROOT / "setup.cfg", VENV / f".installed-{extra}"
    VENV.mkdir(exist_ok=True)
    with open(VENV / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_bytes() != declared.read_bytes():
            install(python, extra)
            shutil.copyfile(declared, installed)
    print(python)
    return 0


def install(python: Path, extra: str) -> None:
    print(f"kafkapy: setting up {VENV.relative_to(ROOT)} (once)", file=sys.stderr)
    if not python.exists():
        venv.create(VENV, with_pip=True)
    target = str(ROOT) if extra == CORE else f"{ROOT}[{extra}]"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--editable", target], stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit("kafkapy: pip could not install what setup.cfg names (see above)")
    subprocess.run([str(python), "-m", "compileall", "-q", str(ROOT / "kafkapy")], check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
