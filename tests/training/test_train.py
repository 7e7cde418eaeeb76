"""`semisync train`: the steps of build_training, from files, in one process or several."""

import json
import pathlib
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow.compat.v1 as tf
import torch
from tensorboard.compat.proto import event_pb2

import migrate
from migrate.data import TextFormat
from migrate.runtime.interface import Input
from migrate.training.converted_task import open_converted
from migrate.training.distributed.shares import check_mean
from migrate.training.reading import open_columns, reading_of
from migrate.training.task import Batch
from migrate.training.trainer import Settings, train
from semisync.cli import main
from semisync.commands.train import _arguments
from semisync.common.errors import BadInput, UsageError
from semisync.encoding.tfrecord import read_records
from tests.model.training.graphs import X, Y, regression, saved
from tests.support.programs import ended, output_of
from tests.support.score_files import write_tfrecord
from tests.training.command import arguments, refusal
from tests.training.memory import Memory


def opened(job):
    return open_converted(migrate.open_checkpoint(job / "clicks.ckpt"))


def test_a_step_is_bit_for_bit_that_of_build_training(job, tmp_path):
    task, rows = opened(job).task, Memory(np.load(job / "clicks.npz"))
    torch.manual_seed(3)
    train(task, Memory(np.load(job / "clicks.npz")), str(tmp_path), Settings(steps=5))
    plain = migrate.build_training(job / "clicks.ckpt")
    torch.manual_seed(3)
    for _, batch in zip(range(5), rows):
        plain.optimizer.zero_grad()
        plain.module(batch.inputs).backward()
        plain.optimizer.step()
    ours, theirs = task.module.state_dict(), plain.module.state_dict()
    assert [name for name in theirs if not torch.equal(ours[name], theirs[name])] == []


def test_an_input_that_is_fed_answers_to_its_tensors_name_too(job):
    inputs = opened(job).inputs
    by_name, by_tensor = (
        reading_of(inputs, {name: "cost"}, {}, "clicked", None) for name in ("price", "price:0")
    )
    assert by_name.column == by_tensor.column
    assert by_name.column["price"] == "cost"


def test_columns_of_files_are_what_the_graph_takes(job, clicks):
    converted = opened(job)
    reading = reading_of(converted.inputs, {}, {}, "clicked", "day")
    from_file = next(iter(open_columns([str(clicks)], reading, 64)))
    in_memory = next(iter(Memory(np.load(job / "clicks.npz"))))
    module = converted.task.module.eval()
    for found, wanted in zip(module(from_file.inputs), module(in_memory.inputs)):
        assert torch.equal(found, wanted)
    assert torch.equal(from_file.labels, in_memory.labels)
    assert list(from_file.days) == list(in_memory.days)


@pytest.mark.long
def test_text_with_gaps_gives_the_batches_of_the_same_rows_in_parquet(job, clicks, tmp_path):
    table = pq.read_table(clicks).slice(0, 64).to_pylist()
    lines = []
    for row in table:
        if row["price"] < 5:
            row["price"] = None
        fields = [row["user"], row["item"], "|".join(map(str, row["tags"])), row["price"]]
        lines.append(
            ";".join("-" if one is None else str(one) for one in [*fields, row["clicked"]])
        )
    (tmp_path / "rows").write_text("\n".join(lines))
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "rows.parquet")
    names = ["user", "item", "tags", "price", "clicked"]
    converted = opened(job)
    reading = reading_of(converted.inputs, {}, {}, "clicked", None, fills={"price": "2.5"})
    written = TextFormat(";", names, null="-")
    found, wanted = (
        next(iter(open_columns([str(tmp_path / name)], reading, 64, text=text)))
        for name, text in (("rows", written), ("rows.parquet", None))
    )
    module = converted.task.module.eval()
    assert all(map(torch.equal, module(found.inputs), module(wanted.inputs)))
    assert found.inputs["price"].min() == 2.5


def test_tfrecord_gives_the_batches_of_the_same_rows_in_parquet(job, clicks, tmp_path):
    table = pq.read_table(clicks).slice(0, 128)
    pq.write_table(table, tmp_path / "rows.parquet")
    write_tfrecord(tmp_path / "rows.tfrecord", table)
    converted = opened(job)
    reading = reading_of(converted.inputs, {}, {}, "clicked", "day")
    module = converted.task.module.eval()
    found, wanted = (
        next(iter(open_columns([str(tmp_path / name)], reading, 64)))
        for name in ("rows.tfrecord", "rows.parquet")
    )
    assert all(map(torch.equal, module(found.inputs), module(wanted.inputs)))
    assert torch.equal(found.labels, wanted.labels)
    assert list(found.days) == list(wanted.days)


def test_sparse_numbers_and_several_texts_per_row_are_read(tmp_path):
    rows = {"weights": [[0.5], [], [1, 2]], "words": [["a", "b"], ["c", "d"], ["e", "f"]]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    parts = [f"weights/{part}:0" for part in ("indices", "values", "shape")]
    inputs = {
        "weights": Input("float32", (None, None), parts),
        "words": Input("string", (None, 2), ["words:0"]),
    }
    reading = reading_of(inputs, {}, {}, None, None)
    batch = next(iter(open_columns([str(tmp_path / "log.parquet")], reading, 3)))
    indices, values, shape = batch.inputs["weights"]
    assert indices.tolist() == [[0, 0], [2, 0], [2, 1]] and values.tolist() == [0.5, 1, 2]
    assert shape.tolist() == [3, 2]
    assert batch.inputs["words"].numpy().tolist() == [[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]]


def test_an_input_of_unknown_width_takes_the_lists_that_a_batch_has(tmp_path):
    rows = {"x": [[0.5, 1.5], [2.5, 3.5]], "words": [["a", "b", "c"], ["d", "e", "f"]]}
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    inputs = {
        "x": Input("float32", (None, None), ["x:0"]),
        "words": Input("string", (None, None), ["words:0"]),
    }
    reading = reading_of(inputs, {}, {}, None, None)
    batch = next(iter(open_columns([str(tmp_path / "log.parquet")], reading, 2)))
    assert batch.inputs["x"].tolist() == rows["x"]
    assert batch.inputs["words"].numpy().tolist() == [[b"a", b"b", b"c"], [b"d", b"e", b"f"]]


@pytest.mark.long
def test_a_type_makes_text_of_numbers_and_a_training_takes_the_steps_of_that_text(
    job, clicks, tmp_path, capsys
):
    rows = pq.read_table(clicks)
    place, users = (
        rows.column_names.index("user"),
        [int(one[1:]) for one in rows["user"].to_pylist()],
    )
    logs = []
    for name, values in (("numbers", users), ("text", list(map(str, users)))):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(rows.set_column(place, "user", pa.array(values)), path)
        if name == "numbers":
            said = refusal(arguments(job, path, tmp_path / "refused"), capsys)
            assert "column 'user' holds int64, but the model takes text; --type makes text" in said
        more = ["--type", "us*=string", "--steps", "8"]
        assert main(arguments(job, path, tmp_path / name, *more)) == 0
        logs += [json.loads(line) for line in (tmp_path / name / "log.jsonl").open()]
    assert logs[0]["loss"] == logs[1]["loss"]


@pytest.fixture(scope="module")
def trained(job, clicks, tmp_path_factory):
    """OUT of the command: two epochs, shuffled."""
    out = tmp_path_factory.mktemp("trained") / "out"
    assert main(arguments(job, clicks, out)) == 0
    return out


def test_the_command_trains_measures_and_reports(trained):
    report = json.loads((trained / "report.json").read_text())
    assert report["steps"] == 32
    assert report["training"]["rows"] == 2 * 4096
    assert sum(day["rows"] for day in report["days"].values()) == 2 * 4096
    assert report["evaluation"]["rows"] == 4096
    assert report["evaluation"]["auc"] > report["training"]["auc"] > 0.55
    assert 0 < report["evaluation"]["normalised entropy"] < 1
    log = [json.loads(line) for line in (trained / "log.jsonl").open()]
    assert [line["step"] for line in log] == [8, 16, 24, 32]
    assert log[-1]["auc"] == report["training"]["auc"]


def test_the_scalars_are_tensorboards_messages(trained):
    (path,) = (trained / "tensorboard").glob("events.out.tfevents.*")
    found = {}
    for record in read_records(str(path)):  # checks the sums
        event = event_pb2.Event.FromString(bytes(record))
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    log = [json.loads(line) for line in (trained / "log.jsonl").open()]
    assert [step for step, _ in found["auc"]] == [8, 16, 24, 32]
    assert np.allclose([auc for _, auc in found["auc"]], [line["auc"] for line in log])


def test_a_second_training_does_not_take_the_place_of_the_first(trained, job, clicks, capsys):
    assert main(arguments(job, clicks, trained)) == 3
    assert "go on with it by --resume" in capsys.readouterr().err


@pytest.mark.long
def test_a_training_that_has_ended_may_get_more_epochs(trained, job, clicks, capsys):
    assert main(arguments(job, clicks, trained, "--resume", "--epochs", "3")) == 0
    assert "trained up to step 48" in capsys.readouterr().out
    assert json.loads((trained / "report.json").read_text())["training"]["rows"] == 3 * 4096


@pytest.mark.parametrize(
    "inputs", [[], ["--input", "user", "--input", "item=item:0"], ["--input", "log=Log1p:0"]]
)
def test_the_label_is_what_the_loss_compares_with_and_inputs_are_named_as_in_migrate(
    job, clicks, trained, tmp_path, inputs
):
    rows = pq.read_table(clicks)
    names = {"clicked": "bought"}
    rows = rows.rename_columns([names.get(name, name) for name in rows.column_names])
    if "log=Log1p:0" in inputs:
        log = pa.array(np.log1p(rows["price"].to_numpy().astype("f")))
        rows = rows.drop_columns(["price"]).append_column("log", log)
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, row_group_size=500)
    assert main(arguments(job, path, tmp_path / "out", *inputs, "--label", "bought")) == 0
    found, expected = (
        [json.loads(line) for line in (folder / "log.jsonl").open()][:4]
        for folder in (tmp_path / "out", trained)
    )
    assert [line["step"] for line in found] == [8, 16, 24, 32]
    for figure in ("loss", "auc"):
        values = [[line[figure] for line in lines] for lines in (found, expected)]
        np.testing.assert_allclose(*values, rtol=1e-5)


@pytest.mark.long
def test_files_that_are_read_in_another_order_than_named_are_told(job, clicks, tmp_path, capsys):
    jan, feb = (tmp_path / name for name in ("jan.parquet", "feb.parquet"))
    for path in (jan, feb):
        shutil.copy(clicks, path)
    told = f"the files are read in the order of their paths: {feb} before {jan}\n"
    given = ["train", str(job / "clicks.ckpt"), "--batch-size", "256", "--steps", "1"]
    given += ["--label", "clicked"]
    for number, (more, says) in enumerate(
        [([jan, feb], True), ([feb, jan], False), ([jan, feb, "--shuffle", "500"], False)]
    ):
        out = str(tmp_path / str(number))
        assert main([*given, "--out", out, "--data", *map(str, more)]) == 0
        assert (told in capsys.readouterr().out) == says


def test_without_a_label_the_loss_alone_is_reported(job, clicks, tmp_path, capsys):
    given = ["train", str(job / "clicks.ckpt"), "--data", str(clicks), "--out", str(tmp_path)]
    assert main([*given, "--steps", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((tmp_path / "report.json").read_text())
    assert err.startswith("step 2: loss ")
    assert json.loads(out) == {
        "schema": "semisync.train/1",
        "steps": 2,
        "rows": {"read": 2048, "trained": 2048, "dropped": 0},
    }
    assert list(json.loads((tmp_path / "log.jsonl").read_text())) == ["step", "loss"]


def test_a_checkpoint_of_the_weights_alone_trains_on_and_comes_back(job, clicks, tmp_path, capsys):
    given = ["train", str(job / "weights.ckpt"), "--data", str(clicks), "--out", str(tmp_path)]
    assert main([*given, "--steps", "2"]) == 0
    assert "lacks beta1_power, beta2_power, global_step, deep/" in capsys.readouterr().out
    begun = json.loads((tmp_path / "report.json").read_text())["begun"]
    assert {"global_step", "model/first/Ftrl_1", "model/users/Adagrad"} < set(begun)
    trained, original = tmp_path / "checkpoints" / "step-00000002", job / "weights.ckpt"
    back = migrate.write_checkpoint(trained, tmp_path / "back", original=original)
    (note,) = back.notes
    assert note.startswith(f"'beta1_power' and {len(begun) - 1} more, which the original lacks")
    assert (back.copied, back.tensors) == ([], len(migrate.open_checkpoint(original)))


def test_what_each_step_changes_in_tensorflow_alone_is_named(tmp_path, capsys):
    def build():
        loss, weight = regression()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([train_op]):
            return tf.train.ExponentialMovingAverage(0.9).apply([weight])

    prefix, data = saved(tmp_path, build), tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": X.tolist(), "y": Y}), data)
    out = tmp_path / "out"
    assert main(["train", prefix, "--data", str(data), "--batch-size", "3", "--out", str(out)]) == 0
    left_out = ["weight/ExponentialMovingAverage"]
    told = f"each step of TensorFlow changes, and torch does not: {left_out[0]}\n"
    assert told in capsys.readouterr().out
    assert json.loads((out / "report.json").read_text())["left_out"] == left_out


@pytest.mark.long
def test_threads_are_as_many_as_are_named(job, clicks, tmp_path):
    assert torch.get_num_threads() == 1
    given = arguments(job, clicks, tmp_path / "out", "--steps", "1", "--threads", "2")
    assert main(given) == 0
    assert torch.get_num_threads() == 2


@pytest.mark.long
def test_nproc_starts_processes_that_train_together(interpreters, job, clicks, tmp_path):
    out, scores = tmp_path / "out", tmp_path / "scores.parquet"
    # 250 does not divide the rows to be evaluated
    given = arguments(job, clicks, out, "--steps", "3", "--nproc", "2", "--batch-size", "250")
    given += ["--epochs", "1", "--key", "key", "--scores", str(scores)]
    report = json.loads(output_of(interpreters / "semisync", *given, "--json"))
    assert report == json.loads((out / "report.json").read_text())
    assert report["training"]["rows"] == 3 * 250
    assert report["evaluation"]["rows"] == 4096
    assert len(set(pq.read_table(scores)["key"].to_pylist())) == 3 * 250


@pytest.mark.long
def test_what_a_process_refuses_is_the_commands_answer(interpreters, job, clicks, tmp_path):
    given = arguments(job, clicks, tmp_path / "out", "--nproc", "2", "--batch-size", "255")
    done = ended(interpreters / "semisync", *given)
    assert done.returncode == 3, done.stderr
    assert "--batch-size 255 cannot be divided among 2 processes" in done.stdout + done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--input", "price=cost"], "has no input 'cost'"),
        (["--feed", "price={"], "--feed price takes JSON"),
        (["--input", "absent=price"], "has no column 'absent'"),
        (["--input", "absent=price"], "--input COLUMN=price names another column"),
        (["--frozen", "int8"], "the graph trains all of its tables"),
        (["--output", "nowhere"], "no tensor 'nowhere'"),
        (
            ["--fill", "price=none"],
            "the fill of the column 'price' is 'none'; a number is expected",
        ),
        (["--fill", "price="], "the fill of the column 'price' is ''; a number is expected"),
        (["--fill", "cost=1"], "the column 'cost' has a fill, but it is not read"),
        (["--type", "cost=int64"], "the column 'cost' has a type, but it is not read"),
        (["--type", "item=long"], "--type knows bool, int32, int64, float32, float64, string, not"),
        (["--text", '{"comma": ","}'], "expected a JSON object of separator, names"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    more, sentence, job, clicks, tmp_path, capsys
):
    assert sentence in refusal(arguments(job, clicks, tmp_path / "out", *more), capsys)


def test_a_label_that_is_neither_0_nor_1_is_refused(job, tmp_path):
    rows = Memory(np.load(job / "clicks.npz"))

    class Graded(Memory):
        def __iter__(self):
            for batch in rows:
                yield batch._replace(labels=batch.labels + 1)

    with pytest.raises(BadInput, match="a label is 2.0, expected 0 or 1"):
        train(opened(job).task, Graded(np.load(job / "clicks.npz")), str(tmp_path))


def test_a_label_of_a_file_that_is_neither_is_named_by_its_row(job, clicks, tmp_path, capsys):
    rows = pq.read_table(clicks)
    labels = rows["clicked"].to_numpy().copy()
    labels[1234] = 2
    place, path = rows.column_names.index("clicked"), tmp_path / "rows.parquet"
    pq.write_table(rows.set_column(place, "clicked", pa.array(labels)), path, row_group_size=500)
    said = refusal(arguments(job, path, tmp_path / "out"), capsys)
    assert f"{path}: column 'clicked' in row 1235 is 2, expected 0 or 1; leave those" in said


def test_a_loss_that_is_a_sum_is_refused_for_several_processes():
    class Sum(torch.nn.Module):
        def forward(self, x):
            return x.sum(), x

    x = torch.arange(8.0)
    shares = [Batch(x[:4]), Batch(x[4:])]
    with pytest.raises(UsageError, match="it is not a mean over the rows"):
        check_mean(Sum(), Batch(x), shares)


def test_a_loss_that_draws_at_random_may_be_a_mean_over_the_rows():
    class Drawn(torch.nn.Module):
        def forward(self, x):
            return (x * torch.rand(())).mean()

    x = torch.arange(8.0)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    check_mean(Drawn(), Batch(x), [Batch(x[:4]), Batch(x[4:])])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_arguments_of_a_process_are_those_of_the_command(job, clicks, tmp_path):
    import argparse

    from semisync.commands.train import configure

    parser = argparse.ArgumentParser()
    configure(parser)
    more = ["--feed", "a=1", "--feed", "b=[2]", "--input", "c=d", "--nproc", "2"]
    more += ["--json", "--fill", "a=0", "--type", "a=string", "--text", '{"separator": ";"}']
    given = parser.parse_args(arguments(job, clicks, tmp_path, *more)[1:])
    again = parser.parse_args(_arguments(given))
    assert {**vars(given), "nproc": None, "resume": True} == vars(again)
    assert pathlib.Path(again.out) == tmp_path


def test_a_device_that_is_not_there_is_refused(job, clicks, tmp_path, capsys):
    for device in ("nowhere", "meta"):
        message = refusal(arguments(job, clicks, tmp_path, "--device", device), capsys)
        assert f"--device {device}: torch cannot compute there (" in message


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_takes_the_steps_of_the_cpu(job, clicks, tmp_path):
    found = {}
    for device in ("cpu", "cuda"):
        assert main(arguments(job, clicks, tmp_path / device, "--device", device)) == 0
        found[device] = json.loads((tmp_path / device / "report.json").read_text())
    ours, theirs = found["cuda"], found["cpu"]
    assert ours["steps"] == theirs["steps"]
    assert ours["training"]["log loss"] == pytest.approx(theirs["training"]["log loss"], rel=1e-3)


def test_an_interruption_says_how_to_go_on(job, clicks, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("migrate.training.trainer.train", interrupt)
    assert main(arguments(job, clicks, tmp_path / "out")) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "semisync train: interrupted; go on with --resume"
