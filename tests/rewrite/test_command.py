"""`semisync rewrite`: what it writes and prints, and what it refuses in one sentence."""

import json

import pytest

from semisync import cli
from semisync.common.compat import tf
from tests.rewrite.exported import export, sgd


@pytest.fixture
def command(tmp_path, capsys):
    """Runs `semisync rewrite` on bytes; returns the exit code, what it printed, the files left."""

    def run(data, *more):
        source = tmp_path / "in.meta"
        source.write_bytes(data)
        out = tmp_path / "out.meta"
        arguments = ["rewrite", str(source), str(out), "--batches-per-step", "4"] + list(more)
        code = cli.main(arguments)
        printed = capsys.readouterr()
        files = sorted(path.name for path in tmp_path.iterdir() if path != source)
        return code, printed.out + printed.err, files

    return run


def test_the_command_writes_the_graph_and_the_report(command, tmp_path):
    data = export(sgd).meta.SerializeToString()
    code, printed, files = command(data, "--max-staleness", "4")
    assert (code, files) == (0, ["out.meta"])
    assert "trained by ApplyGradientDescent" in printed
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(tmp_path / "out.meta"))


def test_a_file_that_is_there_is_replaced_where_that_is_asked_for(command, tmp_path):
    data, out = export(sgd).meta.SerializeToString(), tmp_path / "out.meta"
    out.write_text("another graph")
    code, printed, _ = command(data)
    assert (code, out.read_text()) == (3, "another graph")
    assert "out.meta is there already: pass --overwrite to replace it" in printed
    assert command(data, "--overwrite")[0] == 0
    assert out.read_bytes() != b"another graph"


def test_the_graph_that_is_read_is_never_replaced(tmp_path, capsys):
    source = tmp_path / "in.meta"
    source.write_bytes(export(sgd).meta.SerializeToString())
    before = source.read_bytes()
    words = ["rewrite", str(source), str(source), "--batches-per-step", "4", "--overwrite"]
    assert cli.main(words) == 3
    assert "give OUT.meta another name" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_json_is_printed_alone(tmp_path, capsys):
    (tmp_path / "in.meta").write_bytes(export(sgd).meta.SerializeToString())
    words = ["rewrite", str(tmp_path / "in.meta"), "--batches-per-step", "4", "--dry-run", "--json"]
    assert cli.main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert {op for each in report["trained"] for op in each["by"]} >= {"ApplyGradientDescent"}


def test_a_dry_run_only_prints(command):
    code, printed, files = command(export(sgd).meta.SerializeToString(), "--dry-run")
    assert (code, files) == (0, [])
    assert "chief    runs once per global step" in printed


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"text" * 99]
)
def test_a_damaged_file_is_one_sentence(command, damage):
    code, printed, files = command(damage(export(sgd).meta.SerializeToString()))
    assert (code, files) == (3, [])
    assert "in.meta" in printed and "Traceback" not in printed


def test_a_graph_with_unknown_ops_is_one_sentence(command):
    meta = export(sgd).meta
    meta.graph_def.node.add(name="strange", op="OpFromAnotherLibrary")
    code, printed, files = command(meta.SerializeToString())
    assert (code, files) == (3, [])
    assert "OpFromAnotherLibrary" in printed and "Traceback" not in printed


@pytest.fixture
def run(capsys):
    """Runs `semisync rewrite` with these arguments; returns the exit code, what it said as errors.

    What argparse refuses ends as the command does.
    """

    def run(*arguments):
        try:
            code = cli.main(["rewrite", "--batches-per-step", "4"] + list(map(str, arguments)))
        except SystemExit as error:
            code = error.code
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def job(tmp_path):
    """The .meta file of a checkpoint."""
    path = tmp_path / "model.ckpt-7.meta"
    path.write_bytes(export(sgd).meta.SerializeToString())
    return path


def test_a_dry_run_needs_no_place_to_write_to(run, job):
    assert run(job, "--dry-run")[0] == 0


def test_without_one_the_place_to_write_to_must_be_named(run, job):
    code, said = run(job)
    assert code == 3
    assert "OUT.meta is missing: say where to write the graph, or pass --dry-run" in said


def test_a_folder_that_does_not_exist_is_refused_before_any_work(run, tmp_path):
    missing = tmp_path / "nowhere" / "file"
    code, said = run(tmp_path / "no.meta", missing)
    assert code == 3
    sentence = "{} cannot be written, since there is no folder {}: make it first"
    assert sentence.format(missing, missing.parent) in said


def test_a_checkpoints_prefix_is_refused_with_the_file_to_give(run, job, tmp_path):
    code, said = run(str(job)[: -len(".meta")], tmp_path / "out.meta")
    assert code == 3
    assert "is a checkpoint's prefix: give its graph, {}".format(job) in said


def test_a_folder_stands_for_its_newest_checkpoint(run, tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    code, said = run(folder, tmp_path / "out.meta")
    assert code == 3 and "give a .meta file, it has none" in said
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        loss = tf.square(tf.get_variable("v", initializer=1.0))
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        for number in (9, 10):
            saver.save(session, str(folder / "model.ckpt"), number)
    (folder / "model.ckpt-9.meta").write_bytes(b"damaged")
    code, said = run(folder, tmp_path / "out.meta")
    assert code == 0, said
    assert (tmp_path / "out.meta").exists()
    (folder / "checkpoint").unlink()
    code, said = run(folder, tmp_path / "out.meta")
    assert code == 3
    assert (
        "one of {}, {}".format(*(folder / "model.ckpt-{}.meta".format(n) for n in (10, 9))) in said
    )


def test_a_policy_that_finds_no_trained_variable_is_refused(run, job, tmp_path):
    code, said = run(job, tmp_path / "out.meta", "--policy", "kernl", "async")
    assert code == 3
    assert "the policy's regex 'kernl' finds no variable that is trained: these are " in said
    assert "kernel" in said and not (tmp_path / "out.meta").exists()


@pytest.mark.long
def test_warnings_are_errors_to_read(run, job, tmp_path):
    code, said = run(job, tmp_path / "out.meta")
    assert code == 0
    assert "semisync rewrite: warning: no op has a device" in said
    assert run(job, tmp_path / "placed.meta", "--ps", 2) == (0, "")


def test_several_train_ops_and_the_global_step_can_be_named(run, job, tmp_path):
    options = ["--train-op", "GradientDescent", "--train-op", "nowhere"]
    assert "the graph has no op 'nowhere'" in run(job, tmp_path / "out.meta", *options)[1]
    assert run(job, tmp_path / "out.meta", *options[:2], "--global-step", "global_step")[0] == 0
