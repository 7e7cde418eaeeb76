"""The benchmark of the modes runs, and its JSON has the shape that is promised."""

import json
import sys

import pytest

from benchmarks.semi_sync_parts import table
from tests.support.programs import output_of
from tests.support.require import fastest_tensorflow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    options = ["--cases", "ps-bound", "--modes", "async", "semi-sync"]
    options += ["--repeats", "1", "--seconds", "1", "--python", fastest_tensorflow()]
    options += ["--json", str(folder / "found.json"), "--plot", str(folder / "pace.svg")]
    printed = output_of(sys.executable, "-m", "benchmarks.semi_sync", *options)
    (folder / "printed.md").write_text(printed)
    return folder


@pytest.mark.long
def test_the_json_has_each_figure_of_each_mode_and_the_table_their_ratios(folder):
    found = json.loads((folder / "found.json").read_text())
    (case,) = found["cases"]
    assert "bound" in case["name"]
    (repeat,) = case["repeats"]
    assert sorted(repeat) == ["async", "semi-sync"]
    for mode in repeat.values():
        for figure in (
            "batches_per_second",
            "cpu_per_batch",
            "ps_cpu_per_batch",
            "ps_memory_mb",
            "startup_seconds",
            "first_update_seconds",
        ):
            assert mode[figure] > 0
        assert 0 <= mode["staleness_mean"] <= mode["staleness_max"]
    paces = {name: mode["batches_per_second"] for name, mode in repeat.items()}
    ratio = paces["semi-sync"] / paces["async"]
    assert table.ratios_of(case, "semi-sync / async") == pytest.approx([ratio])
    assert "| {0:.2f} [{0:.2f}, {0:.2f}] |".format(ratio) in (folder / "printed.md").read_text()


@pytest.mark.long
def test_the_table_and_the_plot_name_the_modes(folder):
    printed = (folder / "printed.md").read_text()
    plot = (folder / "pace.svg").read_text()
    for mode in ("async", "semi-sync"):
        assert "| {} |".format(mode) in printed
        assert mode in plot
