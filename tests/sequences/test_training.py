"""A model trains alike in one process and in two, and goes on as if nothing had happened."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import parity
from migrate.sequences import Packed
from migrate.sequences.training.run import open_trained
from migrate.training.checkpoints import CHECKPOINTS, Checkpoints
from semisync.cli import main
from semisync.common import exit_codes
from tests.migrate.raw_tables import write_tfra
from tests.support.conversions import convert
from tests.support.require import ROOT, environment

TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def arguments(config, log, out, *more):
    given = ["sequence", "train", str(config), "--data", str(log), "--out", str(out)]
    return [*given, "--report-every", "1", *more]


def lines(out):
    return [json.loads(line) for line in (out / "log.jsonl").open()]


def in_two(interpreters, given):
    """Runs the command in two processes."""
    program = [str(interpreters / "python"), "-W", "ignore", *TWO, "-m", "semisync", *given]
    subprocess.run(program, cwd=ROOT, env=environment(), timeout=300, check=True)


def back_to_first(out):
    """Leaves a training its oldest checkpoint alone."""
    for step in Checkpoints(str(out / CHECKPOINTS)).steps[1:]:
        os.remove(out / CHECKPOINTS / f"step-{step:08d}" / ".metadata")


def close(found, wanted, tolerance=1e-4):
    """Whether two logs say the same, up to rounding, which grows from step to step."""
    assert [line["step"] for line in found] == [line["step"] for line in wanted]
    for number, (one, other) in enumerate(zip(found, wanted)):
        assert one == pytest.approx(other, rel=tolerance if number < 15 else 100 * tolerance)


@pytest.mark.long
def test_two_processes_and_parts_of_a_batch_take_the_steps_of_one(
    log, settings, interpreters, tmp_path
):
    one = settings()
    assert main(arguments(one, log, tmp_path / "one")) == 0
    in_two(interpreters, arguments(one, log, tmp_path / "two", "--checkpoint-every", "3"))
    wanted = lines(tmp_path / "one")
    assert wanted[-1]["NDCG@10"] > 0.2  # of 40 items at random: 0.11
    close(lines(tmp_path / "two"), wanted)
    assert main(arguments(settings(training=", accumulate: 3"), log, tmp_path / "parts")) == 0
    close(lines(tmp_path / "parts"), wanted)
    measured = [tmp_path / "in two.json", tmp_path / "in one.json"]
    given = ["sequence", "evaluate", str(tmp_path / "two"), "--data", str(log), "--out"]
    in_two(interpreters, [*given, str(measured[0])])
    assert main([*given, str(measured[1])]) == 0
    of_two, of_one = (json.loads(path.read_text()) for path in measured)
    for name in (
        "all items, asked at the last event",
        "without seen items, asked at the last event",
    ):
        assert of_two[name] == pytest.approx(of_one[name])
    back_to_first(tmp_path / "two")
    assert main(arguments(one, log, tmp_path / "two", "--resume")) == 0
    close(lines(tmp_path / "two"), wanted)


@pytest.mark.long
def test_in_batch_negatives_of_two_processes_go_on_to_the_same_digits(
    log, settings, interpreters, tmp_path
):
    config = settings()
    text = config.read_text()
    config.write_text(text.replace("{count: 32,", "{negatives: in-batch, count: 32,"))
    given = arguments(config, log, tmp_path / "two", "--checkpoint-every", "3")
    in_two(interpreters, given)
    wanted = lines(tmp_path / "two")
    back_to_first(tmp_path / "two")
    in_two(interpreters, [*given, "--resume"])
    assert lines(tmp_path / "two") == wanted


@pytest.mark.long
def test_in_bfloat16_it_takes_the_steps_about_where_the_processor_can(
    log, settings, tmp_path, capsys
):
    low = arguments(settings(training=", precision: bfloat16"), log, tmp_path / "low")
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        assert main(low) == exit_codes.BAD_INPUT
        assert "this processor has no bfloat16" in capsys.readouterr().err
        return
    assert main(low) == 0
    assert main(arguments(settings(), log, tmp_path / "whole")) == 0
    close(lines(tmp_path / "low")[:10], lines(tmp_path / "whole")[:10], 0.02)


@pytest.mark.long
def test_torchrecs_tables_are_dealt_out_and_train_alike(log, settings, interpreters, tmp_path):
    config = settings()
    text = config.read_text().replace("dim: 8,", "dim: 8, tables: torchrec,")
    config.write_text(text.replace("rate: 2e-2", "rate: 2e-2, table_rate: 0.1"))
    assert main(arguments(config, log, tmp_path / "one")) == 0
    given = arguments(config, log, tmp_path / "two", "--checkpoint-every", "3")
    in_two(interpreters, given)
    wanted = lines(tmp_path / "one")
    assert wanted[-1]["NDCG@10"] > 0.2
    close(lines(tmp_path / "two"), wanted)
    back_to_first(tmp_path / "two")
    assert main(arguments(config, log, tmp_path / "two", "--resume")) == 0
    close(lines(tmp_path / "two"), wanted)


@pytest.mark.long
def test_killed_it_goes_on_to_the_same_digits(log, settings, interpreters, tmp_path):
    config = settings(dropout=0.3)
    assert main(arguments(config, log, tmp_path / "whole")) == 0
    given = arguments(config, log, tmp_path / "killed", "--checkpoint-every", "1", "--resume")
    program = [str(interpreters / "python"), "-W", "ignore", "-m", "semisync", *given]
    process = subprocess.Popen(program, cwd=ROOT, env=environment())
    checkpoints = Checkpoints(str(tmp_path / "killed" / CHECKPOINTS))
    while not checkpoints.steps or checkpoints.steps[-1] < 3:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = checkpoints.steps[-1]
    assert main(given) == 0
    assert reached < lines(tmp_path / "whole")[-1]["step"]
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")


def test_it_ends_after_epochs_without_a_better_one_and_keeps_the_best(
    log, settings, tmp_path, capsys
):
    config = settings(training=", table_rate: 1e-9, patience: 1")
    text = config.read_text().replace("rate: 2e-2", "rate: 1e-9").replace("epochs: 6", "epochs: 9")
    config.write_text(text)
    out = tmp_path / "out"
    assert main(arguments(config, log, out)) == 0
    epochs = [line for line in lines(out) if "epoch" in line]
    assert len(epochs) < 9
    best = max(epochs, key=lambda line: line["NDCG@10"])
    assert [path.name for path in (out / "best").iterdir()] == [f"step-{best['step']:08d}"]
    assert main(arguments(config, log, out, "--resume")) == 0
    assert len([line for line in lines(out) if "epoch" in line]) == len(epochs)
    config.write_text(config.read_text().replace("patience: 1", "patience: 3"))
    assert main(arguments(config, log, out, "--resume")) == 0
    assert len([line for line in lines(out) if "epoch" in line]) > len(epochs)
    config.write_text(config.read_text().replace("dim: 8", "dim: 16"))
    capsys.readouterr()
    assert main(arguments(config, log, out, "--resume")) == 3
    assert "was begun with model: " in capsys.readouterr().err


@pytest.mark.parametrize("name, other", [("metric", "HR@5"), ("asked", "last")])
def test_epochs_are_compared_by_one_figure_while_a_training_goes_on(
    log, settings, tmp_path, capsys, name, other
):
    config = settings(training=", patience: 1").read_text().replace("epochs: 6", "epochs: 1")
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(config)
    second.write_text(config.replace("patience: 1", f"{name}: {other}"))
    assert main(arguments(first, log, tmp_path / "out")) == 0
    capsys.readouterr()
    assert main(arguments(second, log, tmp_path / "out", "--resume")) == 3
    assert f"was begun with {name}: " in capsys.readouterr().err


def test_events_without_a_time_are_told_to_be_in_the_order_of_the_files_paths(
    settings, tmp_path, capsys
):
    files = [tmp_path / name for name in ("jan.parquet", "feb.parquet")]
    for first, path in enumerate(files):
        item = (first + np.arange(80)) % 7
        pq.write_table(pa.table({"user": np.arange(80) // 4, "item": item}), path)
    config, out = settings(), tmp_path / "out"
    text = config.read_text().replace("data: {time: time}\n", "").replace(", buckets: 16", "")
    config.write_text(text.replace("epochs: 6", "epochs: 1"))
    told = f"{files[1]} before {files[0]}, and so are the events, which have no time\n"
    data = ["--data", *map(str, files)]
    assert main(["sequence", "train", str(config), *data, "--out", str(out)]) == 0
    assert told in capsys.readouterr().out
    assert main(["sequence", "export", str(out), *data, "--out", str(tmp_path / "vectors")]) == 0
    assert told in capsys.readouterr().out
    assert main(["sequence", "evaluate", str(out), "--data", *data[:0:-1]]) == 0
    assert told not in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_the_best_epoch_of_a_training_that_is_gone_is_not_taken_for_the_new_ones(
    log, settings, tmp_path, capsys, more
):
    config, out = settings(), tmp_path / "out"
    config.write_text(config.read_text().replace("epochs: 6", "epochs: 1"))
    assert main(arguments(config, log, out)) == 0
    shutil.rmtree(out / CHECKPOINTS)
    capsys.readouterr()
    assert main(arguments(config, log, out, *more)) == 3
    assert "best is of a training whose checkpoints are gone" in capsys.readouterr().err
    shutil.rmtree(out / "best")
    assert main(arguments(config, log, out, *more)) == 0


@pytest.mark.parametrize(
    "text, message",
    [
        ("model: {hedas: 2}", "settings.yaml: model: unknown field 'hedas' (meant is 'heads'?)"),
        ("model: {heads: 3}", "3 heads cannot share a dim of 64"),
        ("model: {tower: gru}", "tower is 'gru', expected one of hstu, sasrec"),
        ("training: {tokens: 10}", "tokens is 10, expected at least the model's length, 50"),
        ("training: {rate: fast}", "rate: expected float, found 'fast'"),
        ("training: {rate: 0}", "rate is 0.0, expected a number above 0"),
        ("loss: {negatives: hard}", "negatives is 'hard', expected one of all, "),
        ("training: {metric: recall}", "metric is 'recall', expected one of NDCG@10, "),
        ("split: {validation: 3, test: 4}", "split needs times"),
        ("data: [user]", "data: expected the fields of a Columns"),
    ],
)
def test_settings_that_mean_nothing_are_refused_in_one_sentence(
    text, message, log, tmp_path, capsys
):
    config = tmp_path / "settings.yaml"
    config.write_text(text)
    assert main(arguments(config, log, tmp_path / "out")) == 3
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_model_of_an_earlier_version_is_refused(log, tmp_path, capsys):
    (tmp_path / "sequence.json").write_text('{"schema": "semisync.sequence/1"}')
    assert main(["sequence", "evaluate", str(tmp_path), "--data", str(log)]) == 3
    assert "of the schema 'semisync.sequence/1', expected" in capsys.readouterr().err


@pytest.mark.long
def test_vectors_and_best_items_are_those_of_the_model(log, settings, tmp_path, capsys):
    def told(words):
        """The document that a command prints."""
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    out, folder = tmp_path / "model", tmp_path / "vectors"
    trained = told(arguments(settings(), log, out))
    steps = lines(out)[-1]["step"]
    assert trained == {"schema": "semisync.sequence-train/1", "out": str(out), "step": steps}
    figures = tmp_path / "figures.json"
    measured = told(["sequence", "evaluate", str(out), "--data", str(log), "--out", str(figures)])
    assert measured["schema"] == "semisync.sequence-evaluate/1"
    assert measured == json.loads(figures.read_text())
    given = ["sequence", "export", str(out), "--data", str(log), "--out", str(folder)]
    given += ["--top", "10", "--part-size", "25", "--without-seen"]
    exported = told(given)
    assert exported["schema"] == "semisync.sequence-export/1"
    assert (exported["items"], exported["unknown"]) == (40, 0)
    kinds = {kind: pq.read_table(folder / kind).to_pydict() for kind in ("items", "users", "top")}
    items, users = (torch.tensor(kinds[kind]["vector"]) for kind in ("items", "users"))
    events = pq.read_table(log).to_pydict()
    assert kinds["items"]["item"] == sorted(set(events["item"]))
    assert kinds["users"]["user"] == kinds["top"]["user"] == sorted(set(events["user"]))
    for number, user in enumerate(kinds["users"]["user"]):
        had = {item for item, one in zip(events["item"], events["user"]) if one == user}
        scores = (items @ users[number]).tolist()
        order = sorted(range(len(scores)), key=lambda row: -scores[row])
        wanted = [kinds["items"]["item"][row] for row in order]
        assert kinds["top"]["items"][number] == [one for one in wanted if one not in had][:10]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    gone = folder / "users" / "part-00001.parquet"
    gone.unlink()
    assert main(given) == 0
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert {path.name for path in after if after[path] != before[path]} == {gone.name}
    assert main([*given[:-1], "--top", "9"]) == 3


@pytest.mark.long
def test_what_is_text_trains_as_its_fingerprints_do_and_is_written_as_text(
    log, settings, tmp_path, capsys
):
    import tensorflow as tf

    events = pq.read_table(log)
    text = {
        name: [f"{name} {one}" for one in events[name].to_pylist()] for name in ("user", "item")
    }
    ids = {name: tf.fingerprint(one).numpy().view(np.int64)[:, 0] for name, one in text.items()}
    moments = events["time"].cast(pa.timestamp("s"))
    pq.write_table(pa.table({**ids, "time": events["time"]}), tmp_path / "ids.parquet")
    pq.write_table(pa.table({**text, "time": moments}), tmp_path / "text.parquet")
    found = {}
    for kind, types in (("ids", ""), ("text", "user: text, item: text, time: timestamp")):
        config, data, out = settings(), tmp_path / f"{kind}.parquet", tmp_path / kind
        of_data = f"{{time: time, types: {{{types}}}}}"
        config.write_text(config.read_text().replace("{time: time}", of_data))
        assert main(arguments(config, data, out)) == 0
        given = ["sequence", "export", str(out), "--data", str(data), "--top", "3"]
        assert main([*given, "--out", str(out / "vectors")]) == 0
        for part in ("items", "users", "top"):
            found[kind, part] = pq.read_table(out / "vectors" / part).to_pydict()
    for part, name in (("items", "item"), ("users", "user"), ("top", "user")):
        words = dict(zip(ids[name].tolist(), text[name]))
        expected = found["ids", part]
        expected[name] = [words[one] for one in expected[name]]
        if part == "top":
            words = dict(zip(ids["item"].tolist(), text["item"]))
            expected["items"] = [[words[one] for one in row] for row in expected["items"]]
        assert found["text", part] == expected
    (tmp_path / "text" / "items.parquet").unlink()
    assert main([*given, "--out", str(tmp_path / "again")]) == 3
    assert "items.parquet cannot be read" in capsys.readouterr().err


@pytest.mark.long
def test_a_converted_table_gives_the_model_a_start(log, settings, tmp_path, capsys):
    """The table is the trained model's own, as a server of TensorFlow's would have dumped it, with
    a tenth of the items missing and some that nobody met; users have vectors too."""
    cold, warm = tmp_path / "cold", tmp_path / "warm"
    assert main(arguments(settings(), log, cold)) == 0
    folder = tmp_path / "vectors"
    assert main(["sequence", "export", str(cold), "--data", str(log), "--out", str(folder)]) == 0
    items = pq.read_table(folder / "items").to_pydict()
    ids = np.array([*items["item"][4:], 5, -6])
    rows = np.array([*items["vector"][4:], np.ones(8), np.ones(8)])
    order = np.random.default_rng(0).permutation(len(ids)).reshape(2, -1)
    parts = [(ids[part], rows[part]) for part in order]
    write_tfra(tmp_path / "server", "item", parts)
    users = -(10**12) * np.arange(0, 70, 2)  # half of them, and some that are not in the log
    server = write_tfra(tmp_path / "server", "user", [(users, np.ones((35, 8)))])
    convert(server, tmp_path / "converted")
    start = f"start: {{converted: {tmp_path / 'converted'}, item: item}}\n"
    capsys.readouterr()
    assert main(arguments(settings(start), log, warm)) == 0
    assert "begun with the vectors of 90.00% of 40 items" in capsys.readouterr().out
    both = settings(start.replace("item: item", "item: item, user: user"))
    both.write_text(both.read_text().replace("dim: 8,", "dim: 8, users: true,"))
    assert main(arguments(both, log, tmp_path / "both")) == 0
    assert "the vectors of 50.00% of 60 users" in capsys.readouterr().out
    model = open_trained(str(tmp_path / "both")).model
    assert model.table.tables.rows() == {"item": 40, "user": 60}
    first = [next(line for line in lines(out) if "epoch" in line) for out in (cold, warm)]
    assert first[1]["NDCG@10"] > 1.5 * first[0]["NDCG@10"]
    wrong = settings(start.replace("item: item", "item: other"))
    assert main(arguments(wrong, log, tmp_path / "other")) == 3
    assert "no table 'other', expected one of ['item', 'user']" in capsys.readouterr().err


def test_labels_are_learned_from_what_a_user_did_before(tmp_path, capsys):
    """A user likes nearly all items or hardly any, which its own labels tell."""
    draw = np.random.default_rng(5)
    rows = {name: [] for name in ("user", "item", "time", "like", "other")}
    for user in range(150):
        length = draw.integers(5, 14)
        rows["user"].append(user + 10**10)
        rows["item"].append(draw.integers(0, 20, length).tolist())
        rows["time"].append(list(range(length)))
        rows["like"].append((((draw.random(length) < 0.1) + user) % 2).tolist())
        rows["other"].append([0] * length)
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    config, out = tmp_path / "settings.yaml", tmp_path / "out"
    config.write_text(
        "data: {time: time, labels: [like, other]}\nsplit: {validation: 4, test: 6}\n"
        "model: {task: ranking, dim: 16, heads: 2, layers: 1, length: 8, dropout: 0}\n"
        "training: {epochs: 8, tokens: 150, rate: 1e-2}\n"
    )
    assert main(arguments(config, tmp_path / "rows.parquet", out)) == 0
    given = [str(out), "--data", str(tmp_path / "rows.parquet")]
    figures, scores = tmp_path / "figures.json", tmp_path / "scores.parquet"
    more = ["--out", str(figures), "--scores", str(scores)]
    assert main(["sequence", "evaluate", *given, *more]) == 0
    found = json.loads(figures.read_text())["labels"]
    assert found["AUC"] == found["like AUC"] > 0.8 and found["other AUC"] is None
    table = pq.read_table(scores).to_pydict()
    asked = [
        (user, *event)
        for user, *columns in zip(rows["user"], rows["item"], rows["time"], rows["like"])
        for event in zip(*columns)
        if event[1] >= 6
    ]
    columns = (table[name] for name in ("user", "item", "time", "like"))
    logits = dict(zip(zip(*columns), table["like_logit"]))
    assert sorted(logits) == sorted(asked)
    assert parity.auc(table["like"], table["like_logit"]) == pytest.approx(found["like AUC"])
    model = open_trained(str(out)).model
    number = max(range(150), key=lambda user: len(rows["item"][user]))  # asked for in two pieces
    items, likes = rows["item"][number], rows["like"][number]
    labels = {"like": [np.array(likes[5:13])], "other": [np.zeros(8)]}
    with torch.no_grad():
        packed = Packed.of([items[5:13]], [list(range(5, 13))], labels)
        wanted = model.logits(packed)["like"][-3:].tolist()
    user = rows["user"][number]
    mine = [logits[user, items[time], time, likes[time]] for time in (10, 11, 12)]
    assert mine == pytest.approx(wanted, rel=1e-4)
    assert main(["sequence", "export", *given, "--out", str(tmp_path / "vectors")]) == 3
    assert "no vectors" in capsys.readouterr().err
