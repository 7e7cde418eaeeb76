"""`make` builds an environment whole or not at all, and touches none that is not its own."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.support.require import ROOT

pytestmark = pytest.mark.long

# What builds the checkout's package without setuptools, which a new environment may lack.
BACKEND = """
import os, zipfile

def build_editable(folder, *_):
    files = {
        "tiny.pth": os.getcwd(),
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nTag: py3-none-any\\n",
        "tiny-1.0.dist-info/entry_points.txt": "[console_scripts]\\ntiny = tiny:say\\n",
        "tiny-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(os.path.join(folder, "tiny-1.0-py3-none-any.whl"), "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "tiny-1.0-py3-none-any.whl"
"""


def checkout(folder):
    """A folder with this Makefile, a package of one function, and requirements of nothing."""
    (folder / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("torch", "py311", "py37", "tfra"):
        (folder / "requirements" / f"{name}.txt").write_text("# nothing\n")
    (folder / "setup.cfg").write_text("")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "backend.py").write_text(BACKEND)
    (folder / "tiny.py").write_text("import sys\n\ndef say():\n    print(sys.prefix)\n")
    return folder


def make(folder, target=".venv/.made"):
    """(Exit code, what was said) of make, where the target is not up to date."""
    words = ["make", "-C", folder, f"PYTHON={sys.executable}", target]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def says(folder):
    """What the script of the environment's package prints: the environment that runs it."""
    done = subprocess.run([folder / ".venv/bin/tiny"], capture_output=True, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = checkout(tmp_path_factory.mktemp("made") / "checkout")
    code, said = make(folder)
    assert code == 0, said
    return folder


def names(folder):
    return sorted(path.name for path in folder.glob(".venv*"))


def test_the_scripts_of_an_environment_name_the_place_that_it_is_in(built):
    assert says(built) == built / ".venv"
    assert names(built) == [".venv"]
    named = subprocess.run(["grep", "-rlF", ".venv.new", built / ".venv/bin"], capture_output=True)
    assert named.stdout == b""


def test_an_environment_that_cannot_be_built_leaves_the_old_one(built, tmp_path):
    requirements = built / "requirements/py311.txt"
    requirements.write_text(f"{tmp_path}/missing-1.0-py3-none-any.whl\n")
    code, said = make(built)
    assert code != 0 and "missing-1.0" in said
    assert says(built) == built / ".venv"
    requirements.write_text("# nothing\n")
    (built / ".venv/old").touch()
    assert make(built)[0] == 0
    assert says(built) == built / ".venv"
    assert names(built) == [".venv"] and not (built / ".venv/old").exists()


@pytest.mark.parametrize("target", [".venv/.made", "check", "docs", "clean"])
def test_the_environment_of_another_checkout_is_left_alone_behind_a_link(built, tmp_path, target):
    other = checkout(tmp_path / "other")
    (other / ".venv").symlink_to(built / ".venv")
    code, said = make(other, target)
    assert code == 2
    assert "make: .venv is a link, and is left alone: move it away" in said
    assert says(built) == built / ".venv"
    assert (other / ".venv").is_symlink() and names(other) == [".venv"]


@pytest.mark.parametrize("target", [".venv/.made", "clean"])
@pytest.mark.parametrize("kind", ["by hand", "copied"])
def test_an_environment_that_make_did_not_make_here_is_left_alone(built, tmp_path, kind, target):
    other = checkout(tmp_path / "other")
    if kind == "copied":
        shutil.copytree(built / ".venv", other / ".venv", symlinks=True)
    else:
        (other / ".venv").mkdir()
        (other / ".venv/mine").touch()
    before = sorted((other / ".venv").iterdir())
    code, said = make(other, target)
    assert code == 2
    assert "make: .venv was not made here by make, and is left alone: move it away" in said
    assert sorted((other / ".venv").iterdir()) == before
    assert says(built) == built / ".venv"


def test_clean_removes_what_was_made(tmp_path):
    folder = checkout(tmp_path / "checkout")
    for name in (".venv", ".venv.new", ".venv-tf1.old"):
        (folder / name / "bin").mkdir(parents=True)
    (folder / ".venv/.made").touch()
    (folder / ".venv/bin/pip").write_text(f"#!{folder}/.venv/bin/python\n")
    assert make(folder, "clean")[0] == 0
    assert names(folder) == []
