"""A documentation page as a program: its code blocks, run in order in one folder.

    ```python    runs in an interpreter of its own; where the first line is `# file: NAME`, the
                 block becomes that file instead
    ```text      the output of the python block before it
    ```console   bash: `$ ` begins a command, `> ` continues it, the other lines are its output,
                 errors included; a command must succeed, unless `$ echo $?` follows it

In output, `...` stands for anything within a line, and alone on a line for any number of lines.
Blocks of other kinds are not run. A page with `<!-- continues: PAGE ... -->`, paths from its own
folder, begins in a copy of what the blocks of those pages leave in theirs.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tests.support.require import environment

_BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.MULTILINE)
_CONTINUES = re.compile(r"^<!-- continues: (.+) -->$", re.MULTILINE)
_MARK = "--- exit code"


def blocks(page):
    """(kind, text) of each block of the page, in order."""
    return _BLOCK.findall(pathlib.Path(page).read_text(encoding="utf-8"))


def check(page, folder, python):
    """Runs every block of `page` in `folder`; AssertionError if one fails or prints otherwise.

    Args:
        python: the interpreter; its folder comes first in PATH.
    """
    page = pathlib.Path(page)
    before = _CONTINUES.search(page.read_text(encoding="utf-8"))
    for name in before.group(1).split() if before else []:
        left = _left_by((page.parent / name).resolve(), python)
        shutil.copytree(left.name, str(folder), dirs_exist_ok=True)
    ran, printed = 0, None
    for kind, text in blocks(page):
        if kind == "text":
            assert printed is not None, "a text block without a python block before it"
            compare(text, printed)
            printed = None
        elif kind == "console":
            printed = None
            ran += console(text, folder, python)
        else:
            name = re.match(r"# file: (\S+)\n", text)
            if name:
                (folder / name.group(1)).write_text(text, encoding="utf-8")
            else:
                done = _run([python, "-W", "ignore", "-c", text], folder, python, subprocess.PIPE)
                assert done.returncode == 0, "{}\n{}{}".format(text, done.stdout, done.stderr)
                printed, ran = done.stdout, ran + 1
    assert ran, "{} has no block that runs".format(page)


@functools.lru_cache(maxsize=None)
def _left_by(page, python):
    """The folder in which the blocks of a page were run."""
    folder = tempfile.TemporaryDirectory()
    check(page, pathlib.Path(folder.name), python)
    return folder


def console(text, folder, python):
    """Runs a console block in one bash; returns the number of its commands."""
    assert text.startswith("$ "), "a console block begins with a command: {!r}".format(text[:60])
    pieces = _COMMAND.split(text)[1:]
    commands = [command.replace("\n> ", "\n") for command in pieces[::2]]
    script = "".join(
        "{}\n_code=$?; echo; echo '{}' $_code; (exit $_code)\n".format(command, _MARK)
        for command in commands
    )
    done = _run(["bash", "-c", script], folder, python, subprocess.STDOUT)
    results = re.findall(r"(.*?)\n{} (\d+)\n".format(_MARK), done.stdout, re.DOTALL)
    assert len(results) == len(commands), done.stdout
    asked = [command.startswith("echo $?") for command in commands[1:]] + [False]
    for command, expected, (printed, code), excused in zip(commands, pieces[1::2], results, asked):
        assert code == "0" or excused, "$ {}\n{}exit code {}".format(command, printed, code)
        compare(expected, printed, command)
    return len(commands)


def compare(expected, printed, command=""):
    """AssertionError unless `printed` is what the page shows; blank lines at the ends are free."""
    pattern = ""
    for line in expected.strip("\n").splitlines():
        parts = [re.escape(part) for part in line.rstrip().split("...")]
        pattern += "(?:.*\n)*?" if line.strip() == "..." else ".*".join(parts) + "\n"
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    output = "".join(line + "\n" for line in lines)
    assert re.fullmatch(pattern, output), "$ {}\nprinted:\n{}the page has:\n{}".format(
        command, output, expected
    )


def _run(command, folder, python, errors):
    programs = [str(pathlib.Path(program).parent) for program in (python, sys.executable)]
    path = os.pathsep.join([*programs, os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=str(folder),
        env=environment(
            PATH=path,
            TF_CPP_MIN_LOG_LEVEL="3",
            CUDA_VISIBLE_DEVICES="-1",
            PIP_DISABLE_PIP_VERSION_CHECK="1",
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
