"""A real job and the simulator: traces are read back, and the same arrivals have the same fates."""

import csv
import random

import numpy as np
import pytest

import semisync
from semisync import audit
from semisync.chief.ledger import Ledger
from semisync.common.compat import tf
from semisync.fate import of_weight
from semisync.simulate import Async, Cluster, Times, read_traces, simulate
from semisync.transport.messages import STAGED, WITHHELD, Message
from tests.wrap.one_process import Job


def test_a_trace_has_a_line_a_batch_and_is_what_the_simulator_reads(tmp_path):
    path = str(tmp_path / "traces" / "worker-0.csv")
    job = Job(1, paced=True)
    with job.graph.as_default():
        trace = semisync.TraceHook(path)
        hook = job.optimizer.make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(hooks=[hook, trace]) as session:
            job.train(session, *range(10))
    with open(path) as file:
        assert len(list(csv.DictReader(file))) == 10 - 3  # the first ones optimise the graph
    ((pauses, runs),) = read_traces([path])
    result = simulate(Cluster(1, times=Times(traces=[(pauses, runs)])), Async(), 100)
    assert result.batches_per_second < 1 / np.mean(pauses + runs)


@pytest.mark.parametrize("on_stale", ["keep", "drop"])
@pytest.mark.parametrize(
    "policy", [semisync.Threshold(1), semisync.Polynomial(), semisync.Hinge(1, 1)], ids=repr
)
@pytest.mark.few(1)
def test_the_simulators_ledger_gives_the_fates_of_the_tensorflow_job(policy, on_stale, tmp_path):
    log = str(tmp_path / "audit")
    job = Job(2, staleness=policy, on_stale=on_stale, paced=True)
    drawn = random.Random(repr(policy) + on_stale)
    with job.session(audit=log) as session:
        for _ in range(14):
            if drawn.random() < 0.5:
                job.train(session, 1)
            else:
                now = session.run(job.step)
                job.train_late(session, 1, token=max(0, now - drawn.randrange(4)))
    events = audit.read(log)
    real = {b["ticket"]: b for e in events for b in e.get("batches", [e]) if "weight" in b}
    assert len(real) >= 12
    assert settled(real, policy, on_stale) == {
        ticket: (b["staleness"], round(b["weight"], 6), of_weight(b["weight"]))
        for ticket, b in real.items()
    }


def settled(batches, policy, on_stale):
    """The same arrivals, told to a ledger as the simulator has it."""
    ledger = Ledger(2, paced=True, keep_stale=on_stale == "keep", first=min(batches))
    fates, clock = {}, 0

    def weigh(staleness):
        return policy(np.array(staleness, np.float32)).tolist()

    for ticket in sorted(batches):
        while ticket not in ledger.outstanding:
            ledger.issue(1)
        batch = batches[ticket]
        kind = WITHHELD if batch["withheld"] else STAGED
        ledger.receive(Message(batch["member"], kind, ticket, batch["token"], 0))
        applied = ledger.next_global_batch(clock, weigh)
        if applied:
            ledger.book(clock, applied)
            clock += 1
        for event in ledger.drain("events"):
            for one in event.get("batches", [event]):
                if "weight" in one:
                    weight = one["weight"]
                    fates[one["ticket"]] = one["staleness"], round(weight, 6), of_weight(weight)
    for entry in ledger.last_global_batch(clock, weigh):
        weight = entry.weight
        fates[entry.commit.ticket] = entry.staleness, round(weight, 6), of_weight(weight)
    return fates
