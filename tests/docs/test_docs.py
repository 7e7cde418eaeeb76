"""Every page under docs/ does what it says: its code blocks run, and print what it shows."""

import re
import sys

import pytest

from tests.docs.page import blocks, check, compare, console
from tests.support.require import ROOT, tf1_python

DOCS = ROOT / "docs"


def name_of(page):
    """A page's path within docs/, without the suffix."""
    return str(page.relative_to(DOCS).with_suffix(""))


WORDS_ALONE = {
    *(
        "architecture",
        "compare",
        "evidence",
        "foreign",
        "forms",
        "schedulers",
        "status",
        "troubleshooting",
        "versions",
    ),
    *("input/files", "launch/listening", "convert/migrate_data", "convert/migrate_report"),
    *("wrap/rewrite", "wrap/batch_norm", "wrap/parameters", "wrap/peers", "wrap/traps"),
    "wrap/feeds",
    *("convert/hash_tables", "convert/large", "convert/object_stores", "convert/optimizers"),
    *("model/features", "model/files", "model/module", "model/raw_ids"),
    *("prove/options", "prove/score_options", "prove/spark"),
}
FOLDERS = ("wrap", "launch", "convert", "model", "train", "input", "sequences", "prove")
TASKS = sorted(page for folder in FOLDERS for page in DOCS.glob(folder + "/*.md"))
PAGES = sorted(page for page in [*DOCS.glob("*.md"), *TASKS] if name_of(page) not in WORDS_ALONE)


def test_there_is_a_page_for_each_door():
    assert {"wrap", "convert", "prove"} <= {page.stem for page in PAGES}


@pytest.mark.parametrize("name", sorted(WORDS_ALONE))
def test_a_page_of_words_alone_has_no_code(name):
    assert blocks(ROOT / "docs" / (name + ".md")) == []


@pytest.mark.parametrize("page", TASKS, ids=name_of)
def test_a_page_of_one_task_has_at_most_800_words(page):
    assert len(page.read_text(encoding="utf-8").split()) <= 800


def test_each_test_that_a_page_names_is_there():
    named = {
        path
        for page in DOCS.rglob("*.md")
        for path in re.findall(r"tests/[\w/]+\.py", page.read_text())
    }
    assert "tests/model/foreign/test_guard.py" in named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_index_of_a_folder_leads_to_each_of_its_pages(folder):
    index = (DOCS / (folder + ".md")).read_text(encoding="utf-8")
    linked = re.findall(r"\]\({}/(\w+\.md)\)".format(folder), index)
    assert set(linked) == {page.name for page in DOCS.glob(folder + "/*.md")}


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_page_does_what_it_says(page, tmp_path, interpreters):
    check(page, tmp_path, str(interpreters / "python"))


@pytest.mark.long
def test_the_job_of_wrap_runs_on_tensorflow_1_15(tmp_path):
    check(ROOT / "docs" / "wrap" / "running.md", tmp_path, tf1_python())


@pytest.mark.parametrize(
    "text",
    [
        "# A page\n\nWords alone.\n",
        "```python\n# file: job.py\nprint(1)\n```\n",
        "```python\nraise SystemExit(1)\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```text\n2\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ true\n$ echo $?\n1\n```\n",
        "```console\n1\n```\n",
    ],
)
def test_a_page_that_does_nothing_or_something_else_fails(text, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        check(page, tmp_path, sys.executable)


def test_blocks_share_a_folder_and_dots_stand_for_anything(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# file: one.py\nprint(1)\n```\n"
        "```console\n$ python one.py\n1\n$ false\n$ echo $?\n1\n$ seq 3 &&\n> date\n1\n...\n```\n"
        "```python\nprint('took 3 s')\n```\n```text\ntook ... s\n```\n```yaml\nnot: run\n```\n"
    )
    assert len(blocks(page)) == 4
    check(page, tmp_path, sys.executable)


def test_a_line_too_many_or_too_few_is_noticed(tmp_path):
    compare("1\n", "\n1 \n\n")
    for printed in ("1\n2\n", ""):
        with pytest.raises(AssertionError):
            compare("1\n", printed)
    with pytest.raises(AssertionError):
        console("$ seq 2\n1\n$ echo 3\n3\n", tmp_path, sys.executable)
