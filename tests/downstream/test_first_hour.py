"""The first hour: a wheel, an environment with it and numpy alone, and a project that uses it."""

import os
import pathlib
import re
import sys
import zipfile

import pytest

from semisync.cli import SUBCOMMANDS
from semisync.common.distribution import NAME
from tests.downstream import environments
from tests.migrate.table_writer import write_table
from tests.support.require import shared

PROGRAM = pathlib.Path(__file__).with_name("program.py")
# A call of each command that a new user might try first, and the extra that it asks for.
REFUSED = {
    "demo": [],
    "migrate": ["model.ckpt", "--data", "rows.csv", "--label", "click", "--out", "out"],
    "rewrite": ["given", "out.meta", "--batches-per-step", "2"],
    "inspect": ["model.ckpt"],
    "convert": ["model.ckpt", "out"],
    "train": ["model.ckpt", "--data", "rows.csv", "--label", "click", "--out", "out"],
    "verify": ["model.ckpt", "out"],
    "score": ["rows.csv", "--checkpoint", "model.ckpt", "--input", "a", "--output", "x"],
    "parity": ["rows.csv", "--label", "y", "--baseline-score", "a", "--candidate-score", "b"],
    "status": ["--zookeeper", "localhost:1", "--job", "j"],
    "config": ["show", "--zookeeper", "localhost:1", "--job", "j"],
}

HELP_OF_ALL = """
from semisync.cli import SUBCOMMANDS, main

for name in SUBCOMMANDS:
    try:
        main([name, "--help"])
    except SystemExit as end:
        assert end.code == 0, name
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return environments.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory, wheel):
    return environments.make(tmp_path_factory.mktemp("bare"), wheel)


def test_the_wheel_has_the_types_and_the_report_and_no_test(wheel):
    packages = ("semisync", "graph_rewrite", "migrate", "parity")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{name}/{file}" for name in packages for file in ("py.typed", "__init__.py")} <= names
    assert {"semisync/__init__.pyi", "parity/report/report.css"} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(packages)


@pytest.mark.long
def test_every_command_explains_itself_without_any_extra(bare, tmp_path):
    listing = environments.run([bare / "semisync", "--help"], cwd=tmp_path)
    assert (listing.returncode, listing.stderr) == (0, "")
    done = environments.run([bare / "python", "-c", HELP_OF_ALL], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"usage: semisync {name} " in done.stdout for name in SUBCOMMANDS)


@pytest.mark.long
def test_completion_without_its_extra_is_one_sentence_that_names_it(bare, tmp_path):
    done = environments.run([bare / "semisync", "--print-completion", "bash"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "semisync: the Python package 'shtab', needed to write a shell's completion, is not "
        f"installed; run: pip install '{NAME}[completion]'\n"
    )


@pytest.mark.long
def test_completion_takes_its_extra_alone(wheel, tmp_path):
    packages = (*environments.REQUIRED, "shtab")
    there = environments.make(tmp_path / "environment", wheel, packages)
    done = environments.run([there / "semisync", "--print-completion", "bash"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"_semisync_{name}_option_strings" in done.stdout for name in SUBCOMMANDS)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_command_without_its_extra_is_one_sentence_that_names_it(name, bare, tmp_path):
    for given in ("given", "rows.csv", "model.ckpt.meta", "model.ckpt.data-00000-of-00001"):
        (tmp_path / given).write_text("click,y,a,b\n1,1,0.5,0.5\n")
    write_table(tmp_path / "model.ckpt.index", [(b"", b"")])
    before = sorted(os.listdir(tmp_path))
    out = ["--out", "out"] if name in ("score", "parity") else []
    done = environments.run([bare / "semisync", name, *REFUSED[name], *out], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(
        rf"semisync {name}: the Python package '\w+' is not installed; "
        rf"run: pip install '{NAME}\[{SUBCOMMANDS[name].extra}\]'\n",
        done.stderr,
    ), done.stderr
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.long
def test_inspect_needs_no_torch(tmp_path, wheel):
    needed = [*environments.REQUIRED, "google-crc32c"]
    home = environments.make(tmp_path / "home", wheel, needed)
    prefix = shared("models", "joonyoung_dist_2shards") / "model.ckpt-0"
    done = environments.run([home / "semisync", "inspect", prefix], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "local/dense_1/kernel" in done.stdout
    done = environments.run([home / "semisync", "inspect", prefix, "--graph"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "likely output" in done.stdout
    assert (
        "semisync convert --model does not write the model: the Python package 'torch', needed to "
        f"convert it, is not installed; run: pip install '{NAME}[torch]'"
    ) in done.stdout


@pytest.mark.long
def test_pip_finds_the_distribution_installed_and_asks_only_for_what_an_extra_brings(bare):
    pip = [sys.executable, "-m", "pip", "--python", bare / "python", "--disable-pip-version-check"]
    install = ["install", "--dry-run", "--no-index", NAME + "[zookeeper]"]
    done = environments.run([*pip, *install])
    assert "Requirement already satisfied: " + NAME in done.stdout
    (missing,) = re.findall(r"No matching distribution found for (\w+)", done.stderr)
    assert missing in ("aiohttp", "kazoo")


def test_what_needs_no_extra_works_without_any(bare, tmp_path):
    simulate = ["simulate", "--workers", "4", "--modes", "async", "--steps", "9"]
    done = environments.run([bare / "semisync", *simulate], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = environments.run([bare / "python", PROGRAM], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "pace True weights 1.0 verdict EQUIVALENT\n"


@pytest.mark.long
def test_a_type_checker_sees_the_types_of_an_installed_semisync(bare, tmp_path):
    """It passes the program, and notices a name that does not exist and wrong arguments."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import parity\nimport semisync\n\n"
        "semisync.Treshold(4)\n"
        "parity.compare([1], [0.5], [0.5], margin='wide')\n"
        "semisync.GlobalBatchOptimizer()\n"
    )
    check = [sys.executable, "-m", "mypy", "--strict", "--python-executable", bare / "python"]
    check += ["--follow-imports=silent", "--cache-dir", tmp_path / "cache"]
    check += ["--allow-untyped-calls", PROGRAM, wrong]
    done = environments.run(check, cwd=tmp_path)
    found = re.findall(r"^(\S+?):(\d+): error: .*\[(.+)\]$", done.stdout, re.MULTILINE)
    assert [(os.path.basename(file), int(line)) for file, line, _ in found] == [
        ("wrong.py", 4),
        ("wrong.py", 5),
        ("wrong.py", 6),
    ], done.stdout
