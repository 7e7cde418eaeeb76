"""Names of a stranger's on the terminal: no control character, no line of theirs."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.planning import yaml_text
from parity.report.markdown import markdown
from semisync.cli import main
from semisync.cluster.launch.output import Output
from semisync.cluster.status import text
from semisync.common import terminal
from semisync.common.errors import BadInput
from semisync.common.markup import in_html
from semisync.common.progress import Progress
from semisync.encoding.crc32c import masked_value
from semisync.encoding.wire import fixed32_field, varint_field
from semisync.encoding.wire import message_field as message
from tests.foreign.test_checkpoints import bundle
from tests.support.verdicts import comparison

FORGED = "verified: 9 rows of 9 tensors agree in every value"
HOSTILE = [
    f"new\n{FORGED}",
    FORGED,
    f"a\r{FORGED}",
    "\x1b[2J\x1b[31mred",
    "\x9b2Jc1",
    "\u202eevil",
    "a\u2028b",
    "rub\x7fout",
    "two words",
    "dense",
]
DOORS = ("verified", "not verified", "equal", "EQUIVALENT", "wrote", "semisync")  # verdicts of ours


def assert_ours(said, *starts):
    """Every line is printable, and what begins like a verdict is one of these."""
    lines = said.rstrip("\n").split("\n") if said else []
    assert [line for line in lines if not line.isprintable()] == []
    found = [line for line in lines if line.startswith(DOORS)]
    assert len(found) == len(starts), said
    for line, start in zip(found, starts):
        assert line.startswith(start) and not line.startswith(FORGED)


@pytest.fixture()
def checkpoint(tmp_path, monkeypatch):
    """Tensors with these names, float32 [2, 2] each."""
    values = np.arange(4, dtype="<f4").tobytes()
    shape = message(2, message(2, varint_field(1, 2)) * 2)
    crc = fixed32_field(6, masked_value(values))
    entries = [
        (name.encode(), varint_field(1, 1) + shape + varint_field(4, at * 16) + size)
        for at, name in enumerate(sorted(HOSTILE, key=str.encode))
        for size in [varint_field(5, 16) + crc]
    ]
    monkeypatch.chdir(tmp_path)
    bundle(tmp_path, entries, values * len(entries))


def test_every_command_over_a_checkpoint_prints_lines_of_its_own(checkpoint, capsys):
    def said(*arguments, code=0):
        found = main(list(arguments))
        both = capsys.readouterr()
        assert found == code, both
        return both

    for arguments in (["inspect", "m"], ["inspect", "m", "--index"]):
        assert_ours(said(*arguments).out)
    for arguments in (["inspect", "m", "--json"], ["inspect", "m", "--index", "--json"]):
        out = said(*arguments).out
        assert_ours(out)
        assert {tensor["name"] for tensor in json.loads(out)["tensors"]} == set(HOSTILE)
    dry = said("convert", "m", "out", "--no-tables", "--dry-run")
    assert_ours(dry.out)
    assert_ours(dry.err)
    plan = yaml_text.load(dry.out, "plan")
    assert {one["variable"] for one in plan["dense"]} == set(HOSTILE)
    assert_ours(said("convert", "m", "out", "--no-tables").out, "wrote 10 tensors")
    assert_ours(said("inspect", "out").out)
    assert_ours(said("verify", "m", "out").out, "verified: 20 rows of 10 tensors agree")
    with open("m.data-00000-of-00001", "r+b") as file:
        file.write(b"?" * 16)
    damaged = said("inspect", "m", code=3)
    assert_ours(damaged.err, "semisync inspect: ")
    assert_ours(said("verify", "m", "out", code=1).out, "not verified: ")


def test_columns_and_files_of_a_comparison_are_shown_as_literals(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"{name}{place}" for place, name in enumerate(HOSTILE[:4])]
    rows = np.arange(400)
    columns = [rows % 2, (rows * 7 % 11) / 11, (rows * 7 % 13) / 13, rows % 40]
    file = "rows\x1b[31m\n.parquet"
    pq.write_table(pa.table(dict(zip(names, columns))), file)
    options = [f"--label={names[0]}", f"--baseline-score={names[1]}", "--out", "out"]
    options += [f"--candidate-score={names[2]}", f"--group={names[3]}"]
    assert main(["parity", file, *options]) in (0, 1, 2)
    out, err = capsys.readouterr()
    lines = out.rstrip("\n").split("\n")
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])
    for page in ("report.html", "report.md"):
        content = (
            (tmp_path / "out" / page).read_text() if (tmp_path / "out" / page).exists() else ""
        )
        assert "\x1b" not in content and "\u202e" not in content
    assert main(["parity", file, *options, "--label=\x1b[1m"]) == 3
    assert_ours(capsys.readouterr().err, "semisync parity: ")


def test_errors_usage_and_crashes_are_lines_too(monkeypatch, capsys):
    for error in (BadInput, AssertionError):

        def fail(_, error=error):
            raise error(f"\x1b[31m\n{FORGED}\n\u202e")

        monkeypatch.setattr("semisync.commands.inspect.run", fail)
        assert main(["inspect", "m"]) in (3, 4)
        assert_ours(capsys.readouterr().err, "semisync inspect: ")
    with pytest.raises(SystemExit):
        main(["inspect", "m", f"--more\x1b[31m\n{FORGED}"])
    assert_ours(capsys.readouterr().err.partition("\n")[2], "semisync inspect: ")


def test_progress_keeps_to_its_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    progress = Progress(stream)
    for tell in (progress.show, progress.end, progress.note):
        tell(f"\x1b[31m\r\n{FORGED}")
    assert_ours(stream.getvalue().replace("\r\033[K", ""))
    assert FORGED in stream.getvalue()


def test_what_a_peer_tells_the_status_of_is_a_line(capsys):
    for name in HOSTILE:
        found = {
            "job": name,
            "training": None,
            "cluster": {
                "leader": name,
                "epoch": name,
                "generation": name,
                "members": {name: name},
                "waiting_for": [name],
                "outcome": name,
            },
        }
        terminal.say(*text.lines(found))
        assert_ours(capsys.readouterr().out)
        terminal.say(*terminal.json_lines(found, sort_keys=True))
        out = capsys.readouterr().out
        assert_ours(out)
        assert json.loads(out) == found


def test_a_launcher_puts_a_literal_in_front_of_its_commands_lines(capfd):
    output = Output(lambda: f"worker\x1b[1m\n{FORGED}")
    output.pass_on([b"step 1"], is_error=False)
    output.say(f"it ended\n{FORGED}")
    for said in capfd.readouterr():
        assert_ours(said)
        assert len(said.splitlines()) == 1


def test_reports_show_what_is_not_printable():
    for name in HOSTILE:
        assert in_html(name).isprintable()
        assert all(line.isprintable() for line in markdown(comparison(), name).split("\n"))
    assert in_html("<b>\u202e") == "&lt;b&gt;\\u202e"


def test_words_and_names_of_any_language_are_shown_as_they_are():
    for name in ("dense", "model/layer_1/kernel:0", "名前", "größe", "a\\nb"):
        assert terminal.shown(name) == terminal.quoted(name) == name
    assert terminal.quoted("user id") == "'user id'"
    assert terminal.quoted("verified:") == "'verified:'"
