"""What becomes of a late batch: it is withheld, it keeps its slot or gives it back, and says so."""

import pytest

import semisync
from semisync import ADMITTED, DECAYED, PENDING, STALE, audit
from semisync.common.compat import raw_ops, tf
from semisync.staleness import PROBES, fresh_steps
from semisync.transport import job_state
from semisync.worker.state import DUE, TOKEN
from tests.wrap.one_process import Job


def late_job(batches_per_step, staleness, on_stale="keep"):
    return Job(batches_per_step, staleness=staleness, on_stale=on_stale, paced=True)


def events(path, kind):
    return [event for event in audit.read(str(path)) if event["event"] == kind]


def payloads(job):
    """How many are staged, a tensor."""
    put = next(op for op in job.graph.get_operations() if op.type == "OrderedMapStage")
    name = put.get_attr("shared_name").decode()
    with job.graph.as_default():
        return raw_ops.OrderedMapSize(dtypes=put.get_attr("dtypes"), shared_name=name)


@pytest.mark.parametrize("on_stale", ["keep", "drop"])
def test_a_batch_that_is_too_late_sends_nothing(on_stale, tmp_path):
    job = late_job(2, semisync.Threshold(1), on_stale)
    staged = payloads(job)
    with job.session(audit=str(tmp_path / "audit")) as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 100, token=0)
        assert session.run(staged) == 0
        job.train(session, 3)
        job.train(session, 5)
    withheld = [
        batch
        for event in audit.read(str(tmp_path / "audit"))
        for batch in event.get("batches", [event])
        if batch.get("withheld")
    ]
    assert [(b["staleness"], b["weight"]) for b in withheld] == [(2, 0.0)]
    assert audit.check(str(tmp_path / "audit"))["stale"] == 1


def test_a_fresh_batch_stays_staged_until_its_global_batch_is_whole():
    job = late_job(2, semisync.Threshold(1))
    staged = payloads(job)
    with job.session() as session:
        job.train(session, 1)
        assert session.run(staged) == 1
        job.train(session, 1)
        assert session.run(staged) == 0


@pytest.mark.parametrize("bound, steps", [(0, 0), (1, 1), (4, 4), (64, 64)])
def test_a_batch_asks_for_the_clock_where_the_usual_steps_in_its_time_exceed_the_bound(
    bound, steps
):
    weights = [float(staleness <= bound) for staleness in PROBES]
    assert fresh_steps(weights) == steps


def test_a_batch_that_was_quick_is_sent_without_asking_for_the_clock(tmp_path):
    job = late_job(1, semisync.Threshold(1))
    with job.graph.as_default():
        state = job.optimizer.handles.worker.state
        quick = tf.scatter_update(state, [TOKEN, DUE], [0, 2**62])
    with job.session(audit=str(tmp_path / "audit")) as session:
        job.train(session, 1, 1, 1)
        session.run(quick)
        job.train(session, 1)
    batches = [b for event in events(tmp_path / "audit", "step") for b in event["batches"]]
    assert [(b["withheld"], b["staleness"]) for b in batches] == [(False, 0)] * 3 + [(False, 3)]


def test_a_kept_stale_batch_fills_its_slot():
    job = late_job(2, semisync.Threshold(1), "keep")
    with job.session() as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 100, token=0)
        job.train(session, 3)
        assert session.run(job.step) == 3
    assert job.after["w"] == -(1 + 1 + 3 / 2)


def test_a_dropped_stale_batch_gives_its_slot_to_a_fresh_one(tmp_path):
    job = late_job(2, semisync.Threshold(1), "drop")
    with job.session(audit=str(tmp_path / "audit")) as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 100, token=0)
        job.train(session, 3)
        assert session.run(job.step) == 2
        job.train(session, 5)
        assert session.run(job.step) == 3
    assert job.after["w"] == -(1 + 1 + (3 + 5) / 2)
    assert [event["staleness"] for event in events(tmp_path / "audit", "dropped")] == [2]
    assert [len(event["batches"]) for event in events(tmp_path / "audit", "step")] == [2, 2, 2]


def test_at_the_end_a_dropped_batch_does_not_count_among_the_last():
    job = late_job(3, semisync.Threshold(0), "drop")
    with job.session() as session:
        job.train(session, 3, 3, 3)
        job.train_late(session, 100, token=0)
        job.train(session, 4)
    assert job.after["w"] == -(3 + 4)
    assert job.hook.ledger.balance()


@pytest.mark.parametrize("on_stale", ["keep", "drop"])
def test_the_fate_is_pending_until_the_global_batch_is_applied(on_stale):
    job = late_job(2, semisync.Threshold(1), on_stale)
    with job.session() as session:
        assert job.fate(session) == (PENDING, -1)
        job.train(session, 1)
        assert job.fate(session) == (PENDING, -1)
        job.train(session, 1)
        assert job.fate(session) == (ADMITTED, 0)


def test_the_fate_of_an_older_batch_in_the_same_place_is_not_taken_for_a_pending_one(monkeypatch):
    monkeypatch.setattr(job_state, "RING", 2)
    job = late_job(2, semisync.Threshold(1))
    with job.session() as session:
        job.train(session, 1, 1)
        assert job.fate(session) == (ADMITTED, 0)
        for _ in range(2):
            job.train(session, 1)
            fate = job.fate(session)
        assert fate == (ADMITTED, 0)
        job.train(session, 1)
        assert job.fate(session) == (PENDING, -1)


@pytest.mark.parametrize("on_stale", ["keep", "drop"])
@pytest.mark.few(1)
def test_the_fate_of_a_late_batch_is_stale_with_its_staleness(on_stale):
    job = late_job(1, semisync.Threshold(1), on_stale)
    with job.session() as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 100, token=3)
        assert job.fate(session) == (ADMITTED, 1)
        fresh = session.run(job.step)
        job.train_late(session, 100, token=0)
        assert job.fate(session) == (STALE, 5)
        assert session.run(job.step) == (fresh + 1 if on_stale == "keep" else fresh)
        job.train(session, 1)
        assert job.fate(session) == (ADMITTED, 0)


def test_the_fate_of_a_weighed_batch_is_decayed_with_its_staleness():
    job = late_job(1, semisync.Inverse())
    with job.session() as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 8, token=0)
        assert job.fate(session) == (DECAYED, 4)
    assert job.after["w"] == -(4 + 8 / 4)


def test_a_batch_may_become_stale_after_it_was_sent(tmp_path):
    """The worker's own check finds it fresh; the chief, at the next step, does not."""
    job = late_job(2, fresh_for_the_worker, "keep")
    with job.session(audit=str(tmp_path / "audit")) as session:
        job.train(session, 1, 1, 1, 1)
        job.train_late(session, 100, token=0)
        job.train(session, 3)
    assert job.after["w"] == -(1 + 1 + 3 / 2)
    stale = [b for e in events(tmp_path / "audit", "step") for b in e["batches"] if not b["weight"]]
    assert [(b["withheld"], b["staleness"]) for b in stale] == [(False, 2)]


def fresh_for_the_worker(staleness):
    """Threshold(1) for the chief, which weighs M batches; one by itself always counts."""
    alone = tf.equal(tf.size(staleness), 1)
    weights = tf.cast(tf.less_equal(staleness, 1.0), tf.float32)
    return tf.cond(alone, lambda: tf.ones_like(staleness), lambda: weights)
