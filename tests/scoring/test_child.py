"""The TensorFlow process: its messages, and how it may fail. None here has a TensorFlow."""

import io
import sys

import numpy as np
import pytest

from migrate.scoring.tf_child.messages import receive, send
from semisync.cli import main


def test_arrays_arrive_as_they_were_sent():
    text = np.array([[b"", b"a\0b"], ["ü".encode(), b" "]], object)
    sent = {
        "text": text,
        "ids": np.array([[1], [-(2**62)]]),
        "nan": np.array([np.nan, -0.0], ">f4"),
        "none": np.zeros((0, 3), np.float64),
        "flags": np.array([True, False]),
    }
    stream = io.BytesIO()
    send(stream, {"rows": 2}, sent.items())
    send(stream, {"last": "ü"})
    stream.seek(0)
    head, found = receive(stream)
    assert head == {"rows": 2}
    assert list(found) == list(sent)
    for name, array in sent.items():
        assert found[name].shape == array.shape
        assert found[name].tolist() == array.tolist() or name == "nan"
    assert found["nan"].tobytes() == sent["nan"].astype("<f4").tobytes()
    assert receive(stream) == ({"last": "ü"}, {})
    assert receive(stream) is None


def test_a_message_cut_short_or_foreign_is_refused():
    whole = io.BytesIO()
    text = np.array([b"long enough", b"to be cut"], object)
    send(whole, {"rows": 2}, [("ids", np.arange(5)), ("text", text)])
    for length in range(1, len(whole.getvalue())):
        with pytest.raises((EOFError, ValueError)):
            receive(io.BytesIO(whole.getvalue()[:length]))
    with pytest.raises(ValueError, match="not a message"):
        receive(io.BytesIO(b"Hello, world\n"))


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo 'the disk is on fire' >&2; exit 7", "ended with exit code 7: the disk is on fire"),
        ("echo starting >&2; kill -SEGV $$", "ended with SIGSEGV: starting"),
        ("cat > /dev/null", "gave no answer within 0.5 s; --timeout gives it more"),
        ("exec >&-; cat > /dev/stderr", "gave no answer within 0.5 s; --timeout gives it more"),
        ("sleep 600 & head -c 9 > /dev/null; exit 7", "gave no answer within 0.5 s"),
        ("yes", "answers with something else; a Python with TensorFlow is expected"),
        (f'exec "{sys.executable}" -S "$@"', "ended with exit code 1: ModuleNotFoundError: "),
        (f'exec "{sys.executable}" -I -c "import os; os._exit(0)"', "exit code 0: it said nothing"),
    ],
)
def test_a_process_that_gives_no_scores_is_a_sentence_and_no_file(
    tmp_path, capsys, script, sentence
):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"")
    arguments = ["score", "data.csv", "--saved-model", str(tmp_path / "model")]
    arguments += ["--tf-python", str(python), "--out", str(tmp_path / "out.parquet")]
    assert main([*arguments, "--timeout", "0.5" if "answer within" in sentence else "60"]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "python"]


def test_an_interpreter_that_is_not_there_is_named(tmp_path, capsys):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    arguments = ["--saved-model", str(tmp_path), "--tf-python", "/no/such/python"]
    assert main(["score", "d.csv", *arguments, "--out", str(tmp_path / "out")]) == 3
    assert "/no/such/python cannot be run: No such file" in capsys.readouterr().err
