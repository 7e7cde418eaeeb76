"""Figures on the pages are those of the results, and the scripts that give them run."""

import re
import sys

import pytest

from benchmarks import commands, pages, results, run
from tests.support.programs import output_of
from tests.support.require import ROOT

SCRIPTS = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text()
)
NAMES = sorted(path.stem for path in results.FOLDER.glob("*.json"))
# Imports each script as `python -m benchmarks.x` does.
IMPORT = """
import runpy, sys

for script in sys.argv[1:]:
    try:
        runpy.run_module("benchmarks." + script)
    except Exception as error:
        print(script, repr(error))
"""


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_figures_on_a_page_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert pages.filled(text) == text, "python -m benchmarks.pages brings it up to date"
    assert text.count("<!-- figures: ") == text.count("<!-- end -->")


def test_a_figure_typed_into_a_page_is_replaced():
    result = results.read("demo_search")
    page = "Text.\n<!-- figures: demo_search.rates -->\n| typed |\n<!-- end -->\nMore."
    table = results.markdown(result["tables"]["rates"])
    marker = "<!-- figures: demo_search.rates -->"
    assert pages.filled(page) == f"Text.\n{marker}\n\n{table}\n\n<!-- end -->\nMore."


@pytest.mark.parametrize("name", NAMES)
def test_a_result_says_how_when_and_where_it_came_about(name):
    result = results.read(name)
    assert result["schema"] == results.SCHEMA
    assert result["name"] == name
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", result["date"])
    assert result["command"].startswith("python -m benchmarks.")
    assert result["machine"]["processors"] and result["versions"]["Python"]
    assert result["tables"] or result["said"]
    for table in result["tables"].values():
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


def test_what_is_printed_comes_back_from_the_file_as_it_was(tmp_path):
    printed = '2 CPUs\n\n| what | |\n|---|---|\n| a | 1.0 [0.5, 2] |\n| "b" | |\n\nratio: 2\n'
    said, (table,) = results.parsed(printed)
    results.write({"name": "x", "said": said, "tables": {"t": table}}, tmp_path)
    kept = results.read("x", tmp_path)
    assert kept["said"] == ["2 CPUs", "ratio: 2"]
    assert results.markdown(kept["tables"]["t"]) in printed.replace("| what | |", "| what |  |")


def test_a_command_is_run_and_kept_with_its_machine(tmp_path, monkeypatch):
    table = "| a |\\n|---|\\n| 1 |"
    script = tmp_path / "benchmarks" / "stub.py"
    script.parent.mkdir()
    script.write_text(f"import sys\nprint('words', *sys.argv[1:])\nprint('{table}')\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    stub = commands.Benchmark("stub", "stub", ("first",), short="--to {to}")
    result = run.measured(stub, stub.short, {"to": "here", "data": "", "tf1": ""}, 500.0)
    assert result["said"] == ["words --to here"]
    assert result["tables"] == {"first": {"columns": ["a"], "rows": [["1"]]}}
    assert result["machine"]["core_milliseconds"] == 500
    assert result["versions"]["numpy"]


def test_every_command_is_of_a_script_that_exists_and_every_result_of_one_name():
    names = [one.name for one in commands.BENCHMARKS]
    assert len(names) == len(set(names))
    assert {one.script for one in commands.BENCHMARKS} <= set(SCRIPTS)


@pytest.mark.long
def test_every_script_can_be_run():
    command = [sys.executable, "-W", "ignore", "-c", IMPORT, *SCRIPTS]
    assert output_of(*command, cwd=ROOT, TF_CPP_MIN_LOG_LEVEL="3") == ""


def test_the_list_says_what_each_is_and_what_it_needs(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--list", "--data", "absent.parquet"])
    assert run.main() == 0
    listed = dict(one.split(": ", 1) for one in capsys.readouterr().out.strip().split("\n\n"))
    assert list(listed) == [one.name for one in commands.BENCHMARKS]
    assert "hours\n  AUC of synchronous" in listed["auc"]
    assert "absent.parquet, or --data (not here)" in listed["auc"]
    assert listed["coverage"].endswith("\n  python -m benchmarks.parity_coverage")
