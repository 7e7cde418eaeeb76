"""The benchmark of the modes runs, and its JSON has the shape that is promised."""

import json
import pathlib
import sys

import pytest

from tests.support.programs import ended
from tests.support.require import fastest_tensorflow

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "semi_sync.py"


def benchmark(*arguments):
    return ended(sys.executable, SCRIPT, *arguments, PYTHONPATH=str(ROOT))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    options = ["--cases", "ps-bound", "--modes", "async", "semi-sync"]
    options += ["--repeats", "1", "--seconds", "1", "--python", fastest_tensorflow()]
    options += ["--json", str(folder / "found.json"), "--plot", str(folder / "pace.svg")]
    done = benchmark(*options)
    assert done.returncode == 0, done.stderr
    (folder / "printed.md").write_text(done.stdout)
    return folder


@pytest.mark.long
def test_the_json_has_each_figure_of_each_mode_its_spread_and_the_ratios(folder):
    found = json.loads((folder / "found.json").read_text())
    assert found["machine"]["tensorflow"] and found["options"]["repeats"] == 1
    (case,) = found["cases"]
    assert "bound" in case["name"]
    assert sorted(case["modes"]) == ["async", "semi-sync"]
    for mode in case["modes"].values():
        for figure in (
            "batches_per_second",
            "cpu_per_batch",
            "ps_cpu_per_batch",
            "ps_memory_mb",
            "startup_seconds",
            "first_update_seconds",
        ):
            assert mode[figure] > 0
            assert mode["spread"][figure] == [mode[figure]] * 2
            assert mode["repeats"][0][figure] == mode[figure]
        assert 0 <= mode["staleness_mean"] <= mode["staleness_max"]
    ratio = case["ratios"]["semi-sync / async"]
    paces = {name: mode["batches_per_second"] for name, mode in case["modes"].items()}
    assert ratio["median"] == pytest.approx(paces["semi-sync"] / paces["async"])


@pytest.mark.long
def test_the_table_and_the_plot_name_the_modes(folder):
    table = (folder / "printed.md").read_text()
    plot = (folder / "pace.svg").read_text()
    for mode in ("async", "semi-sync"):
        assert "| {} |".format(mode) in table
        assert mode in plot


def test_an_interpreter_without_tensorflow_is_told_in_one_sentence():
    done = benchmark("--python", "/bin/false")
    assert done.returncode == 3
    assert done.stderr == "semi_sync.py: /bin/false cannot import TensorFlow\n"
