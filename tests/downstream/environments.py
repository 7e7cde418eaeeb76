"""Environments as users have them: a wheel of this checkout, and a new environment that has it.

1. The wheel is built of a copy, since setuptools writes beside the sources.
2. The environment holds the wheel and what it requires, and nothing else: links to the packages of
   the tests' own environment, which cost neither a download nor gigabytes.
"""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import venv

from tests.support.require import ROOT, environment

_SOURCES = ("semisync", "graph_rewrite", "migrate", "parity")
_FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
REQUIRED = ("numpy", "lazy_loader", "packaging")  # the last is lazy_loader's


def build_wheel(folder):
    """The path of a wheel of this checkout."""
    copy = folder / "copy"
    for name in _SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(ROOT / name, copy)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*wheel, str(copy)], check=True, stdout=subprocess.DEVNULL)
    (path,) = folder.glob("*.whl")
    return path


def make(folder, wheel=None, packages=REQUIRED):
    """A new environment with a wheel, or None, and some distributions; returns its `bin` folder."""
    venv.create(str(folder), with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet"]
    if wheel is not None:
        install = [*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    for name in packages:
        for top in _tops(name):
            if not (site / top.name).exists():
                (site / top.name).symlink_to(top)
    return folder / "bin"


def _tops(name):
    """The files and folders of a distribution that lie directly in site-packages."""
    files = importlib.metadata.files(name) or []
    names = {file.parts[0] for file in files if file.parts[0] != ".."}
    root = pathlib.Path(importlib.metadata.distribution(name).locate_file(""))
    return [root / top for top in sorted(names) if top != "__pycache__"]


def run(command, **options):
    """Runs a command outside of the checkout, without its packages."""
    clean = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    return subprocess.run(
        [os.fspath(part) for part in command],
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )
