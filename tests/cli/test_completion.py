"""`semisync --print-completion`: with its script a shell completes commands, options and files."""

import sys

import pytest

from semisync.cli import SUBCOMMANDS, main
from semisync.common.distribution import install_command
from tests.support.programs import output_of

# What bash does at a press of the key: the function that `complete` names, with the words so far.
_PRESS = """
source "$0"
function=$(complete -p semisync | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script_of(shell, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", shell])
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.fixture
def completed(tmp_path, capsys):
    """What bash completes the last of some words to, in a folder with a file and a folder."""
    script, folder = tmp_path / "semisync.bash", tmp_path / "folder"
    script.write_text(script_of("bash", capsys))
    (folder / "clicks_model").mkdir(parents=True)
    (folder / "clicks.parquet").touch()

    def press(*words):
        press = ["bash", "--norc", "-c", _PRESS, script, "semisync", *words]
        return sorted(output_of(*press, cwd=folder).split())

    return press


def test_bash_completes_commands_options_choices_and_files(completed):
    assert completed("") == sorted(SUBCOMMANDS)
    assert completed("tr") == ["train"]
    assert completed("--v") == ["--version"]
    assert completed("train", "--re") == ["--report-every", "--resume"]
    assert completed("sequence", "ex") == ["export"]
    assert completed("sequence", "export", "--part") == ["--part-size"]
    assert completed("train", "model.ckpt", "--frozen", "") == ["fp16", "int8"]
    assert completed("train", "model.ckpt", "--data", "cl") == ["clicks.parquet", "clicks_model"]
    assert completed("train", "model.ckpt", "--out", "cl") == ["clicks_model"]
    assert completed("parity", "cl") == ["clicks.parquet", "clicks_model"]


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_the_other_shells_have_each_command_and_option(shell, capsys):
    script = script_of(shell, capsys)
    assert all(name in script for name in SUBCOMMANDS)
    assert "report-every" in script
    assert "\\t" not in script.replace("split -m1 \\t", "")  # no tab that was shown as a letter


@pytest.mark.parametrize(
    ("shell", "package", "sentence"),
    [
        ("bash", None, "not installed; run: " + install_command("completion") + "\n"),
        ("ksh", "there", "invalid choice: 'ksh'"),
    ],
)
def test_what_it_cannot_write_is_one_sentence(shell, package, sentence, capsys, monkeypatch):
    if package is None:
        monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as end:
        main(["--print-completion", shell])
    assert end.value.code == 3
    said = capsys.readouterr().err.splitlines(keepends=True)[-1]
    assert said.startswith("semisync: ")
    assert sentence in said
