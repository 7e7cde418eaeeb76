"""The distribution: what the packages are called where they are installed from.

Its name is not that of the package: on PyPI `semisync` is another project. In a clone pip is given
the clone's path. Where a wheel is installed the name suffices: pip finds it there already, and
fetches only what the extras bring.
"""

import importlib
import pathlib
import shlex

NAME = "semisync-ctr"
ROOT = pathlib.Path(__file__).resolve().parents[2]  # of a clone, else where packages are installed


def install_command(extras):
    """The command that installs extras, such as "report,torch"."""
    source = str(ROOT) if (ROOT / "setup.cfg").exists() else NAME
    return "pip install " + shlex.quote("{}[{}]".format(source, extras))


def version():
    """The installed version; a phrase where there is none."""
    for name in ("importlib.metadata", "importlib_metadata"):  # the latter with Python 3.7
        try:
            metadata = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return metadata.version(NAME)
        except metadata.PackageNotFoundError:
            return "run from its sources, not installed"
    return "of an unknown version"
