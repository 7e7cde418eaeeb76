"""Invariants 1 to 3 of semi-synchronous training, on real clusters of separate processes.

One cluster (2 PS, 3 workers) trains every case; the tests read what its processes wrote. The
reference is TensorFlow itself: the plain optimizer, in this process, on the union of the batches.
"""

import collections
import json

import numpy as np
import pytest

from semisync import audit
from semisync.cluster.forked import ForkedCluster
from semisync.common.compat import tf
from tests.support.asked import asked
from tests.support.variables import load
from tests.wrap.job import batch, build_loss, make_optimizer


def case(name, **changes):
    """One training case with the defaults that most cases share; see tests.wrap.job."""
    spec = {
        "name": name,
        "optimizer": "GradientDescent",
        "loss": "square",
        "batches_per_step": 3,
        "batches": [6, 6, 6],
        "paced": True,
        "bound": None,
        "resource": False,
        "slow": [0, 0, 0],
        "slow_chief": 0,
        "save_every": None,
    }
    assert not set(changes) - set(spec), "unknown key in a case"
    spec.update(changes)
    return spec


SYNCHRONOUS = [
    case("adam_resource", optimizer="Adam", resource=True),
    case("more_batches_than_workers", batches_per_step=6),
    case("fewer_batches_than_workers", optimizer="Adam", batches_per_step=2),
    case("unequal_ends", optimizer="Adagrad", batches=[3, 6, 10]),
    case("partial_last_step", optimizer="Adagrad", resource=True, batches=[2, 5, 1]),
]
LATE = [0.02, 0.001, 0.4]
BEHIND = {
    "loss": "linear",
    "paced": False,
    "bound": 2,
    "batches_per_step": 2,
    "batches": [60, 60, 60],
    "slow_chief": 0.05,
}
ASYNCHRONOUS = [
    case("no_bound", loss="linear", paced=False, batches=[20, 30, 5], slow=LATE),
    case(
        "bound", loss="linear", paced=False, bound=1, resource=True, batches=[20, 30, 5], slow=LATE
    ),
    case("all_current", loss="linear", paced=False, bound=0, batches=[20, 30, 5], slow=LATE),
    case(
        "paced_at_both_ends",
        loss="linear",
        paced=[4, 12],
        batches=[18, 18, 18],
        slow=[0.02, 0.001, 0.15],
    ),
    case("behind", **BEHIND),
    case("behind_and_bounded", **dict(BEHIND, paced={"most": 1.0})),
    case("checkpoints", loss="linear", paced=False, batches=[45, 45, 46], save_every=1),
    case(
        "mean_staleness",
        loss="linear",
        batches_per_step=2,
        paced={"most": 0.5},
        batches=[20, 30, 5],
        slow=LATE,
    ),
]
CASES = {spec["name"]: spec for spec in SYNCHRONOUS + ASYNCHRONOUS}
# Between them, every kind of variable, optimizer and pace: what may depend on TensorFlow's version.
ON_EACH = ("adam_resource", "unequal_ends", "bound", "mean_staleness")
LONG = (
    "more_batches_than_workers",
    "fewer_batches_than_workers",
    "partial_last_step",
    "no_bound",
    "all_current",
    "behind",
    "behind_and_bounded",
    "checkpoints",
)


def names(specs):
    """The parameters of a fixture of cases; those that one TensorFlow trains are marked."""
    found = []
    for spec in specs:
        name = spec["name"]
        marks = [] if name in ON_EACH else [pytest.mark.one_tensorflow]
        marks += [pytest.mark.long] if name in LONG else []
        found.append(pytest.param(name, marks=marks))
    return found


class Run:
    """What one case left behind."""

    def __init__(self, spec, out):
        base = str(out / spec["name"])
        self.spec = spec
        self.checkpoints = base + ".checkpoints"
        self.chief_says = (out / "worker-0.log").read_text()  # in all cases
        self.before, self.after = (
            dict(np.load(base + end)) for end in (".before.npz", ".after.npz")
        )
        self.steps = audit.steps(base + ".audit")
        self.audited = audit.check(base + ".audit")
        with open(base + ".ledger") as log:
            self.ledger = json.load(log)
        self.batches = {}
        for task in range(len(spec["batches"])):
            with open("{}.{}.json".format(base, task)) as log:
                for row in json.load(log):
                    self.batches[row["ticket"]] = dict(row, task=task)

    def inputs(self, audited):
        """The ids and targets of an audited batch."""
        trained = self.batches[audited["ticket"]]
        return batch(trained["task"], trained["number"])


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """{name: `Run`} of the cases that are asked for."""
    cases = [CASES[name] for name in asked(request)]
    out = tmp_path_factory.mktemp("runs")
    with ForkedCluster("tests.wrap.job", 2, 3, out) as cluster:
        cluster.start_all(cases=cases, out=str(out))
        cluster.wait(timeout=600)
    return {spec["name"]: Run(spec, out) for spec in cases}


@pytest.fixture(params=names(CASES.values()))
def run(request, runs):
    return runs[request.param]


@pytest.fixture(params=names(SYNCHRONOUS))
def synchronous(request, runs):
    return runs[request.param]


@pytest.fixture(params=names(ASYNCHRONOUS))
def asynchronous(request, runs):
    return runs[request.param]


def union_training(run, steps):
    """Trains the plain optimizer from run.before on each step's union of batches."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None, 4])
        targets = tf.placeholder(tf.float32, [None])
        with tf.variable_scope(run.spec["name"]):
            loss = build_loss(run.spec["loss"], ids, targets, run.spec["resource"])
            train = make_optimizer(run.spec["optimizer"]).minimize(
                loss, global_step=tf.train.get_or_create_global_step()
            )
        variables = {v.op.name.split("/", 1)[1]: v for v in tf.global_variables()}
        load(session, {variable: run.before[name] for name, variable in variables.items()})
        for step in steps:
            inputs = [run.inputs(audited) for audited in step["batches"]]
            session.run(
                train,
                {
                    ids: np.concatenate([i for i, _ in inputs]),
                    targets: np.concatenate([t for _, t in inputs]),
                },
            )
        return session.run(variables)


def largest_difference(run, expected):
    """Over all variables and slots; each must exist on both sides."""
    assert set(run.after) == set(expected)
    return max(np.abs(run.after[name] - expected[name]).max() for name in expected)


@pytest.mark.few(1)
def test_zero_staleness_equals_one_batch_of_the_union(synchronous):
    expected = union_training(synchronous, synchronous.steps)
    assert largest_difference(synchronous, expected) < 2e-5


@pytest.mark.parametrize("run", ["unequal_ends"], indirect=True)
def test_a_batch_moved_to_another_step_would_be_noticed(run):
    steps = json.loads(json.dumps(run.steps))
    here, there = steps[0]["batches"], steps[1]["batches"]
    here[0], there[0] = there[0], here[0]
    assert largest_difference(run, union_training(run, steps)) > 1e-3


def test_paced_training_has_no_staleness(synchronous):
    assert {b["staleness"] for step in synchronous.steps for b in step["batches"]} == {0}


@pytest.mark.one_tensorflow
@pytest.mark.parametrize("run", ["paced_at_both_ends"], indirect=True)
def test_the_running_job_is_paced_at_its_start_and_at_its_end_and_not_between(run):
    staleness = [max(b["staleness"] for b in step["batches"]) for step in run.steps]
    assert len(staleness) == 18
    assert set(staleness[:4]) == {0}
    assert max(staleness[4:12]) > 0
    # Six tickets that wait and three that are out end in three steps.
    assert set(staleness[15:]) == {0}


@pytest.mark.parametrize("run", ["mean_staleness"], indirect=True)
def test_the_wanted_mean_staleness_bounds_the_batches_that_a_step_passes_over(run):
    passed = collections.Counter()
    for step in run.steps:
        for audited in step["batches"]:
            passed.update(range(audited["token"], step["step"]))
    assert set(passed.values()) == {1}  # 0.5 x M


def admitted_sums(run, forgotten=()):
    """What the variables must be after each number of steps, from the audited batches alone.

    The loss is linear, so a batch moves each variable by the same amount whenever it is applied.

    Returns:
        A list of len(run.steps) + 1 dicts, names to values in float64.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None, 4])
        targets = tf.placeholder(tf.float32, [None])
        with tf.variable_scope("case"):
            loss = build_loss("linear", ids, targets, False)
        variables = {v.op.name.split("/", 1)[1]: v for v in tf.trainable_variables()}
        used = {name: v for name, v in variables.items() if name != "unused"}
        gradients = {n: tf.convert_to_tensor(tf.gradients(loss, v)[0]) for n, v in used.items()}
        session.run(tf.global_variables_initializer())
        sums = [{name: run.before[name].astype(np.float64) for name in used}]
        for step in run.steps:
            expected = {name: value.copy() for name, value in sums[-1].items()}
            for audited in step["batches"]:
                if audited["ticket"] in forgotten:
                    continue
                inputs, outputs = run.inputs(audited)
                share = audited["weight"] / len(step["batches"])
                for name, g in session.run(gradients, {ids: inputs, targets: outputs}).items():
                    expected[name] -= 0.1 * share * g
            sums.append(expected)
        return sums


def differs(values, expected):
    """Names of the variables that are not what is expected."""
    return {n for n, value in expected.items() if np.abs(values[n] - value).max() > 2e-4}


def test_every_variable_on_every_ps_holds_exactly_the_audited_batches(asynchronous):
    assert differs(asynchronous.after, admitted_sums(asynchronous)[-1]) == set()


@pytest.mark.parametrize("run", ["mean_staleness"], indirect=True)
def test_a_batch_missing_from_one_variable_would_be_noticed(run):
    forgotten = run.steps[1]["batches"][0]["ticket"]
    without = admitted_sums(run, forgotten={forgotten})[-1]
    assert {"bias", "kernel"} <= differs(run.after, without)


def saved_variables(prefix):
    """Every variable of a checkpoint by the name that `Run` has for it, partitions apart."""
    reader = tf.train.NewCheckpointReader(prefix)
    values = {n.split("/", 1)[1]: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}
    parts = np.array_split(values.pop("table"), 3)
    values.update({"table/part_{}".format(i): part for i, part in enumerate(parts)})
    return values


@pytest.mark.long
@pytest.mark.one_tensorflow
@pytest.mark.parametrize("run", ["checkpoints"], indirect=True)
def test_each_checkpoint_is_a_whole_step_and_the_last_one_the_end(run):
    prefixes = tf.train.get_checkpoint_state(run.checkpoints).all_model_checkpoint_paths
    sums, steps = admitted_sums(run), []
    for prefix in prefixes:
        values = saved_variables(prefix)
        steps.append(int(values["global_step"]))
        assert differs(values, sums[steps[-1]]) == set()
    assert len(steps) >= 10
    assert steps[-1] == len(run.steps)


def test_each_step_applies_m_batches_and_the_last_one_the_rest(run):
    sizes = [len(step["batches"]) for step in run.steps]
    total = sum(run.spec["batches"])
    size = run.spec["batches_per_step"]
    assert sizes == [size] * (total // size) + ([total % size] if total % size else [])
    assert [step["step"] for step in run.steps] == list(range(len(sizes)))
    assert run.after["global_step"] == len(sizes)


def test_each_trained_batch_is_applied_once(run):
    applied = [b["ticket"] for step in run.steps for b in step["batches"]]
    assert sorted(applied) == sorted(run.batches)
    assert run.ledger["balanced"]
    assert sum(run.audited[fate] for fate in ("admitted", "decayed", "stale")) == len(applied)


def test_staleness_is_the_step_of_application_minus_the_token(run):
    for step in run.steps:
        for audited in step["batches"]:
            assert audited["token"] == run.batches[audited["ticket"]]["token"]
            assert audited["staleness"] == step["step"] - audited["token"] >= 0


def test_threshold_zeroes_exactly_the_batches_beyond_its_bound(asynchronous):
    bound = asynchronous.spec["bound"]
    for step in asynchronous.steps:
        for audited in step["batches"]:
            within = bound is None or audited["staleness"] <= bound
            assert audited["weight"] == (1.0 if within else 0.0)


@pytest.mark.long
@pytest.mark.one_tensorflow
@pytest.mark.parametrize("run", ["behind", "behind_and_bounded"], indirect=True)
def test_a_chief_that_falls_behind_says_so_and_its_advice_helps(run):
    if run.spec["name"] == "behind":
        assert run.ledger["stale"] > 90
        assert "batches were too stale to count" in run.chief_says
    else:
        assert run.ledger.get("stale", 0) < 20


@pytest.mark.long
@pytest.mark.one_tensorflow
@pytest.mark.parametrize("run", ["all_current", "no_bound"], indirect=True)
def test_the_slow_worker_makes_batches_stale(run):
    assert max(b["staleness"] for step in run.steps for b in step["batches"]) > 2
    assert ("stale" in run.ledger) == (run.spec["bound"] is not None)
