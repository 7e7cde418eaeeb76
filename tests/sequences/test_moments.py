"""What is at one time is of one moment: none of it is known when the rest is asked for."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parity
from migrate.sequences import Columns, SplitAt, read_histories, split
from migrate.sequences.packing import Asking, Source, in_pieces, pack, pack_pieces
from migrate.sequences.splits import Ends
from migrate.sequences.training.feed import Feed
from migrate.sequences.training.settings import Training
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError


def histories_of(path, times):
    """A user for each list; the items count up from 0."""
    users = np.repeat(np.arange(len(times)), [len(own) for own in times])
    table = {"user": users, "item": np.arange(len(users)), "time": np.concatenate(times)}
    pq.write_table(pa.table(table), path)
    return read_histories(path, Columns(time="time"))


def impressions(path):
    """Five items at a time, one of which was clicked by chance."""
    draw, rows = np.random.default_rng(0), []
    for user in range(400):
        time = 0
        for _ in range(12):
            time, hit = time + int(draw.integers(3600, 90000)), draw.integers(5)
            rows += [(user, int(draw.integers(200)), time, int(one == hit)) for one in range(5)]
    names = ("user", "item", "time", "click")
    pq.write_table(pa.table(dict(zip(names, map(np.array, zip(*rows))))), path)


@pytest.mark.long
def test_which_of_five_items_shown_at_once_was_clicked_by_chance_nothing_tells(tmp_path, capsys):
    impressions(tmp_path / "log.parquet")
    (tmp_path / "rank.yaml").write_text(
        "data: {time: time, labels: [click]}\nsplit: {validation: 400000, test: 480000}\n"
        "model: {task: ranking, dim: 16, layers: 1, length: 40, buckets: 16, dropout: 0.0}\n"
        "training: {epochs: 3, tokens: 400, rate: 1e-2, warm_up: 5}\n"
    )
    data, out = ["--data", str(tmp_path / "log.parquet")], str(tmp_path / "out")
    assert main(["sequence", "train", str(tmp_path / "rank.yaml"), *data, "--out", out]) == 0
    assert "100.00% of the events do not see others" in capsys.readouterr().out
    scores = tmp_path / "scores.parquet"
    assert main(["sequence", "evaluate", out, *data, "--scores", str(scores)]) == 0
    assert "100.00% of the events do not see others" in capsys.readouterr().out
    table = pq.read_table(scores).to_pydict()
    rows, clicks = len(table["click"]), sum(table["click"])
    assert rows == 4440 and clicks == rows / 5
    half = 1.96 * math.sqrt((rows + 1) / (12 * clicks * (rows - clicks)))
    assert parity.auc(table["click"], table["click_logit"]) == pytest.approx(0.5, abs=half)


def test_no_split_cuts_through_a_moment(tmp_path):
    times = [[1, 2, 2, 5, 5, 5], [1, 1, 3, 3], [4, 6, 8], [7, 7, 7]]
    histories = histories_of(tmp_path / "log.parquet", times)
    found = split(histories, SplitAt())
    assert [part.tolist() for part in found.train[:2]] == [[1, 3], [4, 3]]
    assert [part.tolist() for part in found.asked["validation"][:3]] == [[0, 2], [1, 1], [3, 2]]
    assert [part.tolist() for part in found.asked["test"][:3]] == [[0, 2], [3, 2], [6, 3]]


def test_events_are_asked_for_in_pieces_of_whole_moments_after_what_was_before(tmp_path):
    times = [[1, 2, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6], [1, 1, 2]]
    histories = histories_of(tmp_path / "log.parquet", times)
    pieces = in_pieces(histories, Ends(np.array([0, 1]), np.array([1, 2]), np.array([16, 3])), 3)
    stops = list(zip(pieces.users.tolist(), pieces.ends.tolist(), pieces.stops.tolist()))
    of_first = [(1, 2), (2, 5), (5, 6), (6, 9), (9, 12), (12, 13), (13, 16)]
    assert stops == [*((0, *piece) for piece in of_first), (1, 2, 3)]
    packed = pack_pieces(Source(histories, 6), pieces)
    assert [part.tolist() for part in packed.items.split(packed.lengths.tolist())] == [
        [0, 1],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5],
        [3, 4, 5, 6, 7, 8],
        [3, 4, 5, 9, 10, 11],
        [1, 2, 3, 4, 5, 12],
        [10, 11, 12, 13, 14, 15],
        [16, 17, 18],
    ]


def test_a_history_of_one_moment_has_no_next_item_to_train_on(tmp_path):
    histories = histories_of(tmp_path / "log.parquet", [[1, 1, 1], [1, 1, 2, 3], [1, 2]])
    ends = Ends(np.arange(3), histories.lengths)
    batches = list(Feed(Source(histories, 8), ends, True, Training(epochs=1, tokens=6)))
    assert [sorted(batch.inputs.packed.lengths.tolist()) for batch in batches] == [[2, 4]]
    assert all(batch.inputs.weight == 1 for batch in batches)
    with pytest.raises(BadInput, match="no history of the 1 has events of two moments"):
        Feed(Source(histories, 8), ends.some(np.array([0])), True, Training())
    ranked = list(Feed(Source(histories, 8), ends, False, Training(epochs=1, tokens=20)))
    assert [len(batch.inputs.packed.items) for batch in ranked] == [9]


def test_a_users_own_vector_stands_before_its_first_moment(tmp_path):
    histories = histories_of(tmp_path / "log.parquet", [[5, 5, 9]])
    packed = pack(Source(histories, 8, first_user=3), Ends(np.array([0]), np.array([3])))
    assert packed.times.tolist() == [4, 5, 5, 9]
    found = packed.followed()
    assert found.seen.items.tolist() == [3, 0, 1] and found.seen.asked.tolist() == [9]
    assert found.asking.tolist() == [0, 0, 2] and found.following.tolist() == [1, 2, 3]


def test_when_a_user_is_asked():
    assert [Asking.of(text) for text in ("next", "last", "+60", "1700")] == [
        Asking(),
        Asking(after=0),
        Asking(after=60),
        Asking(at=1700),
    ]
    assert Asking.of("2024-01-01T00:01:00").at == 1704067260
    with pytest.raises(UsageError, match="asked at 'noon', expected next, last, .N, a number, or"):
        Asking.of("noon")


@pytest.fixture(scope="module")
def of_gaps(tmp_path_factory):
    """A log in which the time since the event before alone tells of what kind an event is, a
    model of it, and the log without each user's last event."""
    folder, draw = tmp_path_factory.mktemp("gaps"), np.random.default_rng(0)
    rows, last = [], []
    for user in range(300):
        time, count = 0, int(draw.integers(8, 16))
        for number in range(count):
            kind = int(draw.integers(8))
            time += int(np.exp(0.301 * (6 * kind + 3))) + 1
            row = (user, kind * 5 + int(draw.integers(5)), time)
            (last if number == count - 1 else rows).append(row)
    for name, some in (("log", rows + last), ("cut", rows), ("last", last)):
        table = dict(zip(("user", "item", "time"), map(np.array, zip(*some))))
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    (folder / "gap.yaml").write_text(
        "data: {time: time}\n"
        "model: {dim: 16, layers: 1, length: 16, buckets: 64, dropout: 0.0}\n"
        "loss: {negatives: all, temperature: 0.1}\n"
        "training: {epochs: 25, tokens: 300, rate: 2e-2, warm_up: 5, patience: 30, asked: next}\n"
    )
    given = ["--data", str(folder / "log.parquet"), "--out", str(folder / "model")]
    assert main(["sequence", "train", str(folder / "gap.yaml"), *given]) == 0
    return folder


def figures(folder, *more):
    out = folder / "figures.json"
    given = [str(folder / "model"), "--data", str(folder / "log.parquet"), "--out", str(out)]
    assert main(["sequence", "evaluate", *given, *more]) == 0
    return json.loads(out.read_text())


@pytest.mark.long
def test_figures_say_when_was_asked_and_are_those_of_what_is_exported_then(of_gaps, capsys):
    found = figures(of_gaps)
    told = capsys.readouterr().out
    assert "all items, asked at the time of the event to predict: HR@5" in told
    assert found["all items, asked at the time of the event to predict"]["HR@5"] > 0.5
    assert found["all items, asked at the last event"]["HR@5"] < 0.3
    last = pq.read_table(of_gaps / "last.parquet").to_pydict()
    wanted = dict(zip(last["user"], last["item"]))
    for at, name in (
        ("last", "asked at the last event"),
        ("+5000", "asked 5000 after the last event"),
        (str(10**9), f"asked at {10**9}"),
    ):
        expected = figures(of_gaps, "--at", at)[f"all items, {name}"]["HR@5"]
        capsys.readouterr()
        given = [str(of_gaps / "model"), "--data", str(of_gaps / "cut.parquet"), "--top", "5"]
        out = of_gaps / f"vectors {at}"
        assert main(["sequence", "export", *given, "--out", str(out), "--at", at]) == 0
        assert f"40 items, 300 users {name}: " in capsys.readouterr().out
        top = pq.read_table(out / "top").to_pydict()
        hits = [wanted[user] in items for user, items in zip(top["user"], top["items"])]
        assert np.mean(hits) == pytest.approx(expected)
        assert main(["sequence", "export", *given, "--out", str(out), "--at", "+1"]) == 3


@pytest.mark.parametrize(
    "verb, at, message",
    [
        ("export", "next", "an export has no event to predict"),
        ("export", "100", "a user is asked at 100, and its last known event is at "),
        ("evaluate", "soon", "it is asked at 'soon', expected next, last, +N, a number, or a time"),
    ],
)
def test_a_time_that_means_nothing_is_refused(of_gaps, verb, at, message, tmp_path, capsys):
    data = ["--data", str(of_gaps / "log.parquet"), "--out", str(tmp_path / "out")]
    assert main(["sequence", verb, str(of_gaps / "model"), *data, "--at", at]) == 3
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_without_a_bias_by_time_no_time_is_asked_for(tmp_path, capsys):
    config = tmp_path / "settings.yaml"
    config.write_text("data: {time: time}\ntraining: {asked: last}\n")
    given = ["--data", str(tmp_path / "none.parquet"), "--out", str(tmp_path / "out")]
    assert main(["sequence", "train", str(config), *given]) == 3
    assert "asked is 'last': when it is asked has no influence" in capsys.readouterr().err
