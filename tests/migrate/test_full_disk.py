"""A file system that is really full: what was done is kept, and --resume goes on with it."""

import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest

import migrate
from migrate.model.load import read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.targets import work_directory
from semisync import cli
from semisync.common.errors import SemisyncError, UsageError
from tests.migrate.raw_tables import write_hugectr
from tests.support.bundles import write
from tests.support.conversions import interrupt, make_plan
from tests.support.programs import output_of

OWN = ["unshare", "--map-root-user", "--mount"]  # mounts of its own, which go when it ends


@pytest.fixture
def own_mounts():
    if (
        not shutil.which("unshare")
        or subprocess.run([*OWN, "true"], capture_output=True).returncode
    ):
        pytest.skip("this system lets nobody but root mount a file system")


@pytest.mark.parametrize(
    ("hashed", "sizes"),
    [
        (False, [0, 700_000, 1_285_000]),
        # while the rows are sorted, in the map of 160 kB, the table, and what stands behind it
        (True, [0, 700_000, 1_500_000, 1_700_000, 2_200_000, 3_200_000]),
    ],
)
@pytest.mark.long
def test_a_full_disk_is_named_and_resumed_when_there_is_room(tmp_path, own_mounts, hashed, sizes):
    source, folder = tmp_path / "source", tmp_path / "small"
    folder.mkdir()
    rows = np.random.default_rng(0).random((20_000, 16), dtype=np.float32)
    if hashed:
        source.mkdir()
        write_hugectr(source, np.arange(len(rows))[::-1], rows)
    else:
        write(source, {"rows": rows})
    assert tried(source, folder, sizes) == [[unfinished(folder), None]] * len(sizes)


def tried(source, folder, sizes):
    command = [*OWN, sys.executable, "-m", "tests.migrate.fill_disk", source, folder]
    return [json.loads(line) for line in output_of(*command, *sizes).splitlines()]


def unfinished(folder):
    return (
        f"Unfinished: cannot write {folder / 'out'}: No space left on device; what was done is "
        f"kept in {folder / '.out.partial'}: make room and go on with --resume, or delete it"
    )


def write_model(prefix):
    """A model that is kept in files of every kind: a vocabulary, a constant, a turned kernel."""
    import tensorflow.compat.v1 as tf

    words = prefix.parent / "words.txt"
    words.write_text("".join(f"word {number}\n" for number in range(1000)))
    with tf.Graph().as_default(), tf.Session() as session:
        initializer = tf.lookup.TextFileInitializer(
            str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, -1
        )
        ids = tf.lookup.StaticHashTable(initializer, 0).lookup(tf.placeholder(tf.string, [None]))
        some = np.random.default_rng(0).random((1000, 8), dtype=np.float32)
        kernel = tf.get_variable("dense/kernel", [8, 256])
        hidden = tf.nn.bias_add(
            tf.matmul(tf.gather(tf.constant(some), ids), kernel), tf.get_variable("dense/bias", 256)
        )
        tf.reduce_sum(hidden, 1, name="logits")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(prefix))


@pytest.mark.long
def test_a_model_appears_with_its_data_or_not_at_all(tmp_path, own_mounts):
    folder, prefix = tmp_path / "small", tmp_path / "model.ckpt"
    folder.mkdir()
    write_model(prefix)
    pages = range(0, 40, 3)  # of data, turned kernel, constants, words, text
    said = tried(prefix, folder, [pages * 4096 for pages in pages])
    failed = [one for one in said if one[0] is not None]
    assert failed == [[unfinished(folder), None]] * len(failed)
    assert 8 < len(failed) < len(pages)


def test_a_model_that_could_not_be_written_is_not_taken_for_a_conversion(tmp_path, capsys):
    prefix, out = tmp_path / "model.ckpt", tmp_path / "out"
    write_model(prefix)
    command = ["convert", str(prefix), str(out), "--model", "--output", "logits"]
    assert cli.main([*command[:2], str(tmp_path / "whole"), *command[3:]]) == 0
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # the data are smaller, and the constants larger
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, unlimited[1]))
        assert cli.main(command) != 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    said = capsys.readouterr()
    assert "wrote" not in said.out.split("whole/model.py")[1]
    assert "File too large; what was done is kept in" in said.err
    assert not out.exists()
    assert cli.main([*command[:3], "--resume"]) == 3
    assert "was begun with another plan, target, model or source" in capsys.readouterr().err
    assert cli.main([*command, "--resume"]) == 0
    assert subprocess.run(["diff", "-r", tmp_path / "whole", out]).returncode == 0


def test_a_model_whose_vocabulary_is_gone_leaves_nothing(tmp_path):
    prefix, out = tmp_path / "model.ckpt", tmp_path / "out"
    write_model(prefix)
    with migrate.open_checkpoint(prefix) as checkpoint:
        found = read_meta_graph(checkpoint, None)
        model = write_source(found, checkpoint, find_outputs(found.graph, "logits"))
        plan = migrate.plan(checkpoint)
    (tmp_path / "words.txt").unlink()
    os.mkfifo(tmp_path / "words.txt")
    with pytest.raises(SemisyncError, match="cannot write .*/out: "):
        migrate.convert(plan, out, model=model)
    assert not out.exists() and not (tmp_path / ".out.partial").exists()


def test_too_little_room_does_not_cost_what_an_interruption_left(
    tf2_checkpoints, tmp_path, monkeypatch, small_parts
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    interrupt(plan, tmp_path / "out", 10)
    work = tmp_path / ".out.partial"
    before = (work / "journal").read_bytes()
    monkeypatch.setattr(work_directory, "_written", lambda _: 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, 0))
    with pytest.raises(UsageError, match="has 0 bytes free, but the conversion needs"):
        migrate.convert(plan, tmp_path / "out", resume=True)
    assert (work / "journal").read_bytes() == before
    with pytest.raises(UsageError, match="has 0 bytes free"):
        migrate.convert(plan, tmp_path / "other")
    assert list(tmp_path.iterdir()) == [work]


def test_the_staged_rows_of_a_hash_table_are_room_that_is_taken_already(tmp_path):
    before = work_directory._written(str(tmp_path))
    (tmp_path / "ids").mkdir()
    with open(tmp_path / "ids" / "0.values", "wb") as file:
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    assert work_directory._written(str(tmp_path)) - before >= 1 << 20
