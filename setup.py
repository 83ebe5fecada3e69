"""What is installed is declared in setup.cfg; here is only what the environment may add to it.

With KAFKAPY_COMPILE=1 mypyc compiles the modules that setup.cfg lists under kafkapy:compiled. Their
source is installed beside the result, and all else stays as it is.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from configparser import ConfigParser

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext

# Higher levels take twice as long to build and run no faster.
_OPTIMISATION = "1"


class CompiledBuild(build_ext):
    """Has mypyc write the C, late: what pip asks before a build must work without mypy."""

    def finalize_options(self):
        self.distribution.ext_modules = _compiled_modules()
        super().finalize_options()


class CompiledDistribution(Distribution):
    def has_ext_modules(self):
        return True


def _compiled_modules():
    try:
        from mypyc.build import mypycify
    except ImportError:
        sys.exit("KAFKAPY_COMPILE=1 needs mypy: pip install mypy")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        sys.exit(f"KAFKAPY_COMPILE=1 needs a C compiler, and there is no {compiler}")
    declared = ConfigParser()
    declared.read("setup.cfg")
    modules = declared["kafkapy:compiled"]["modules"].split()
    paths = [module.replace(".", "/") + ".py" for module in modules]
    # bin/check judges the types; here a missing stub of somebody else's must not stop the build.
    flags = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    extensions = mypycify([*flags, *paths], opt_level=_OPTIMISATION, debug_level="0")
    for extension in extensions:
        # Python's own flags have -Wall, on which gcc would spend more than on all the rest.
        extension.extra_compile_args.append("-Wno-all")
        # Nobody replaces functions of this library: calls within it need no detour through tables,
        # which take a tenth of what a request leaves of the processor's cache.
        extension.extra_compile_args += ["-fvisibility=hidden", "-fno-plt"]
        if sys.platform == "linux":
            extension.extra_compile_args.append("-fno-semantic-interposition")
            extension.extra_link_args += ["-Wl,-Bsymbolic", "-Wl,-z,now"]
    return extensions


if os.environ.get("KAFKAPY_COMPILE") == "1":
    setup(
        distclass=CompiledDistribution,
        cmdclass={"build_ext": CompiledBuild},
        setup_requires=["mypy >=1.11,<3"],
    )
else:
    setup()
