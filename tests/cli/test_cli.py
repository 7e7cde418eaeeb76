"""The command's frame: what it imports, how it fails."""

import json
import sys

import pytest

from semisync.cli import SUBCOMMANDS, main
from semisync.common.distribution import install_command
from tests.support.programs import ended, output_of
from tests.support.require import tf1_python

FRAMEWORKS = (
    "tensorflow", "tensorboard", "torch", "torchrec", "pyarrow", "matplotlib", "scipy", "sklearn",
    "pandas",
)  # fmt: skip


def modules_after(code):
    """The frameworks that are imported once `code` has run in a fresh interpreter."""
    report = f"\nimport json, sys; print(json.dumps([m for m in {FRAMEWORKS} if m in sys.modules]))"
    return json.loads(output_of(sys.executable, "-c", code + report).splitlines()[-1])


@pytest.mark.parametrize("package", ["semisync", "graph_rewrite", "migrate", "parity"])
def test_importing_a_package_imports_no_framework(package):
    assert modules_after(f"import {package}") == []


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in SUBCOMMANDS)])
@pytest.mark.few(4)
def test_help_imports_no_framework(arguments):
    code = (
        "from semisync.cli import main\n"
        f"try: main({arguments})\n"
        "except SystemExit as end: assert end.code == 0, end.code"
    )
    assert modules_after(code) == []


def test_a_framework_that_is_imported_is_seen():
    assert modules_after("import pyarrow") == ["pyarrow"]


@pytest.mark.parametrize("package", ["semisync", "graph_rewrite", "migrate", "parity"])
def test_public_names_are_sorted_and_exist(package):
    module = __import__(package)
    assert list(module.__all__) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    import semisync

    with pytest.raises(AttributeError, match="semisync attribute GlobalBatchOptimiser"):
        semisync.GlobalBatchOptimiser  # noqa: B018


@pytest.mark.parametrize("arguments", [[], ["fly"], ["demo", "--wings", "2"], ["parity"]])
def test_a_usage_error_ends_with_exit_code_3(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as end:  # argparse's way
        code = end.code
    assert code == 3
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "convert"])
def test_a_missing_checkpoint_is_one_sentence(command, tmp_path, capsys):
    out = [str(tmp_path / "out")] if command == "convert" else []
    assert main([command, str(tmp_path / "none.ckpt"), *out]) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"semisync {command}: ")
    assert error.count("\n") == 1
    assert "none.ckpt" in error


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "semisync.commands.parity", None)
    monkeypatch.setattr("importlib.import_module", lambda name: __import__("kazoo_not_there"))
    assert main(["parity"]) == 3
    error = capsys.readouterr().err
    assert "'kazoo_not_there' is not installed" in error
    assert error.endswith(install_command("report") + "\n")


@pytest.mark.parametrize("command", ["inspect", "convert", "verify", "parity", "demo"])
def test_a_python_that_cannot_install_the_extra_is_told_so(command):
    done = ended(tf1_python(), "-m", "semisync.cli", command, "x")
    assert done.returncode == 3
    assert done.stderr == (
        f"semisync {command}: needs Python 3.10 or later, and this is Python 3.7; "
        "run it with a later one\n"
    )


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m semisync.cli --help"
    listing = f"{sys.executable} -c 'from semisync.cli import main; import sys; sys.exit(main())'"
    pipes = f"{command} | true; {listing} demo --help | true; echo ${{PIPESTATUS[0]}}"
    assert "Traceback" not in ended("bash", "-c", pipes).stderr


def test_a_place_that_cannot_be_written_is_one_sentence(capsys):
    assert main(["demo", "--out", "/proc/none/demo"]) == 3
    error = capsys.readouterr().err
    assert error.startswith("semisync demo: /proc/none")
    assert error.count("\n") == 1


def broken_library(*_):
    try:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")
    except OSError as error:
        raise OSError("Could not load this library: /site/fbgemm_gpu/fbgemm_gpu_py.so") from error


def test_a_library_that_does_not_load_is_named_with_its_reason(monkeypatch, capsys):
    monkeypatch.setattr("semisync.commands.inspect.run", broken_library)
    assert main(["inspect", "model.ckpt"]) == 3
    assert capsys.readouterr().err == (
        "semisync inspect: Could not load this library: /site/fbgemm_gpu/fbgemm_gpu_py.so "
        "(libnvidia-ml.so.1: cannot open shared object file); on a machine without CUDA its CPU "
        "build takes its place: pip uninstall fbgemm-gpu, then pip install --no-deps "
        "fbgemm-gpu-cpu\n"
    )


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["parityy"], "parity"),
        (["parity", "--labl", "click", "scores.csv"], "--label"),
        (["convert", "model.ckpt-1", "--modle"], "--model"),
        (["convert", "model.ckpt-1", "out", "--taget=dcp"], "--target"),
    ],
)
def test_what_was_nearly_written_is_named(arguments, near, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 3
    assert capsys.readouterr().err.endswith(f"; did you mean {near}?\n")
