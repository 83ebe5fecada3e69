"""Makes the checkout's own virtual environments, once, and prints their Python.

Run by the launchers with any Python 3.11+ and only the standard library. The setup.cfg that was
installed is kept in .venv: a launcher that finds it equal to the checkout's does not come here.
`compiled` stands for the other environment, .venv-compiled: a copy of kafkapy with its hot modules
compiled, so that the checkout itself never holds anything but source. It is made anew whenever the
source has changed. Two commands started at once wait for each other on a lock file.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = "core"
COMPILED = "compiled"
# What an installation is made from.
SOURCES = (
    "kafkapy",
    "pyspark_kafkapy.py",
    "pyspark_kafkapy_segments.py",
    "setup.cfg",
    "setup.py",
    "README.md",
    "LICENSE",
)


def main(extra: str) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file runs before the right Python is known
        sys.exit(f"kafkapy needs Python 3.11 or newer, found {sys.version.split()[0]}")
    home = ROOT / (".venv-compiled" if extra == COMPILED else ".venv")
    python, installed = home / "bin" / "python", home / f".installed-{extra}"
    state = digest_of_sources() if extra == COMPILED else (ROOT / "setup.cfg").read_bytes()
    home.mkdir(exist_ok=True)
    with open(home / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_bytes() != state:
            note = "about a minute" if extra == COMPILED else "once"
            print(f"kafkapy: setting up {home.name} ({note})", file=sys.stderr)
            if not python.exists():
                venv.create(home, with_pip=True)
            if extra == COMPILED:
                install_compiled(python)
            else:
                install(python, extra)
            installed.write_bytes(state)
    print(python)
    return 0


def install(python: Path, extra: str) -> None:
    if extra == CORE:
        pip_install(python, "--editable", str(ROOT))
    else:
        # Of Spark, mypy and the like a run imports the smaller part: compiled when it is.
        pip_install(python, "--no-compile", "--editable", f"{ROOT}[{extra}]")
    # Also an entry of the path: Spark looks for modules pyspark_*, and in directories only.
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    (packages / "kafkapy-checkout.pth").write_text(f"{ROOT}\n")
    subprocess.run([str(python), "-m", "compileall", "-q", str(ROOT / "kafkapy")], check=False)


def install_compiled(python: Path) -> None:
    pip_install(python, "setuptools >=70.1", "mypy >=1.11,<3")
    # From a copy, so that nothing is left in the checkout, and nothing left there gets in.
    with tempfile.TemporaryDirectory(prefix="kafkapy-compile-") as directory:
        copy_sources(Path(directory))
        pip_install(python, "--no-build-isolation", directory, compiled=True)


def pip_install(python: Path, *what: str, compiled: bool = False) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Said either way: an editable installation that compiled would do it inside the checkout.
    environment = {**os.environ, "KAFKAPY_COMPILE": "1" if compiled else "0"}
    if subprocess.run([*command, *what], stdout=sys.stderr, env=environment).returncode != 0:
        sys.exit("kafkapy: pip could not install what setup.cfg names (see above)")


def copy_sources(directory: Path) -> None:
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, directory / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, directory)


def digest_of_sources() -> bytes:
    digest = hashlib.sha256(sys.version.encode())
    for name in SOURCES:
        found = ROOT / name
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest().encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
