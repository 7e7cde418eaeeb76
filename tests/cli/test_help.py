"""What every --help ends with, and the version."""

import argparse
import re
import shlex

import pytest

from semisync.cli import SUBCOMMANDS, main, module_of
from semisync.common import exit_codes
from tests.support.require import ROOT

_EXAMPLE = re.compile(r"^  (semisync (?:.*\\\n)*.*)$", re.MULTILINE)


def printed(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], *([name] for name in SUBCOMMANDS)])
def test_every_help_lists_the_exit_codes(arguments, capsys):
    text = printed(capsys, *arguments, "--help")
    assert text.endswith(exit_codes.listing() + "\n")


def test_the_command_alone_lists_its_commands(capsys):
    assert main([]) == exit_codes.BAD_INPUT
    listed = capsys.readouterr().err
    for name, subcommand in SUBCOMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(subcommand.help)}$", listed, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("migrate", "[options] --data DATA --label COL --out DIR CHECKPOINT"),
        ("convert", "[options] PREFIX OUT"),
        ("status", "[options] --zookeeper HOST:PORT,...[/PATH] --job ID"),
    ],
)
def test_the_usage_is_what_must_be_given(name, usage, capsys):
    expected = f"usage: semisync {name} {usage}"
    assert printed(capsys, name, "--help").splitlines()[0] == expected
    with pytest.raises(SystemExit):
        main([name, "--absent"])
    assert capsys.readouterr().err.splitlines()[0] == expected


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_shows_examples_that_it_takes(name, capsys):
    text = printed(capsys, name, "--help")
    examples = _EXAMPLE.findall(text.partition("\nexamples:\n")[2])
    assert len(examples) >= 2
    parser = argparse.ArgumentParser()
    module_of(name).configure(parser)
    for example in examples:
        words = shlex.split(example.partition(" > ")[0].replace("\\\n", ""))
        assert words[:2] == ["semisync", name]
        parser.parse_args(words[2:])
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_no_help_lists_more_than_a_dozen_options_under_one_heading(name, capsys):
    text = printed(capsys, name, "--help").partition("\nexamples:\n")[0]
    groups = re.split(r"^(?=\S.*:$)", text, flags=re.MULTILINE)[1:]
    options = {
        group.split(":")[0]: len(re.findall(r"^  --", group, re.MULTILINE)) for group in groups
    }
    assert {title: count for title, count in options.items() if count > 12} == {}


def test_the_page_of_commands_has_the_same_exit_codes():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (\d+) \| (.*?) \|$", page, re.MULTILINE)) == {
        str(code): meaning for code, meaning in exit_codes.MEANINGS.items()
    }


def test_the_page_of_commands_lists_every_subcommand():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `semisync (\w+)", page, re.MULTILINE)) == set(SUBCOMMANDS)


def test_the_version_is_told(capsys):
    assert re.fullmatch(r"semisync \S.*, Python 3\.\d+\.\d+\S*\n", printed(capsys, "--version"))
