"""--json: every command has it, and what it prints is one document and nothing else."""

import argparse
import json
import subprocess
import sys

import pytest

from semisync import cli
from semisync.answers import add_json, answer, apart
from semisync.cli import main
from semisync.common.terminal import say
from tests.support.require import ROOT, environment


def leaves(parser):
    """The parsers of the commands, of whose actions each is one."""
    nested = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not nested:
        yield parser
    for action in nested:
        for subparser in action.choices.values():
            yield from leaves(subparser)


RUN_HERE = [name for name, one in cli.SUBCOMMANDS.items() if sys.version_info >= one.python]


@pytest.mark.parametrize("name", RUN_HERE)
def test_every_command_answers_in_json(name):
    parser = cli.parser_of(name)
    assert [one.prog for one in leaves(parser) if "--json" not in one._option_string_actions] == []


def test_all_else_goes_to_the_standard_error(capsys):
    with apart(True):
        say("at work")
        print("so does a library")
        answer(True, {"name": "one\ttwo"}, ["in words"])
        say("done")
    say("after it")
    out, err = capsys.readouterr()
    assert out == '{\n "name": "one\\ttwo"\n}\nafter it\n'
    assert err == "at work\nso does a library\ndone\n"


def test_without_it_the_answer_is_lines(capsys):
    with apart(False):
        answer(False, {"name": 1}, ["in words", "and more"])
    assert capsys.readouterr() == ("in words\nand more\n", "")


def test_its_help_says_what_the_document_holds():
    parser = argparse.ArgumentParser()
    add_json(parser, "the figures")
    assert "print the figures as JSON, and all else to stderr" in parser.format_help()


@pytest.mark.parametrize("more", [[], ["--advise"]])
def test_a_process_prints_the_document_alone(more):
    words = ["simulate", "--workers", "2", "--steps", "5", "--json", *more]
    program = [sys.executable, "-m", "semisync", *words]
    done = subprocess.run(program, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert json.loads(done.stdout)["semi-sync"]["batches_per_second"] > 0


def test_an_error_is_a_sentence_and_no_document(capsys):
    assert main(["inspect", "nowhere", "--json"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("semisync inspect: ") and err.count("\n") == 1
