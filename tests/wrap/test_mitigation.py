"""What keeps batches from being late: as many tickets as a wanted mean staleness allows."""

import argparse
import contextlib
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import semisync
from semisync.chief.ledger import Ledger
from semisync.commands import simulate as command
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.pacing import MeanStaleness, PacedSteps
from semisync.simulate import Cluster, SemiSync, Times, simulate
from semisync.transport.messages import DRAWN, STAGED
from tests.wrap.test_ledger import apply_all, draw_and_stage, tell


def test_tickets_ahead_are_whole_batches_however_the_product_is_rounded():
    assert [MeanStaleness(0.29).ahead(100), MeanStaleness(0.5).ahead(3)] == [29, 1]


def test_paced_steps_are_the_first_and_those_from_the_last_change_on():
    paced = PacedSteps(first=2, since=5)
    assert [paced.at(step) for step in range(7)] == [True, True, *[False] * 3, True, True]


def test_m_tickets_a_step_and_those_ahead_of_it_once():
    ledger = Ledger(4, paced=True, ahead=2, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 6
    draw_and_stage(ledger, tickets[:3])
    assert ledger.tickets_due(undrawn=0) == 0
    draw_and_stage(ledger, tickets[3:4])
    assert apply_all(ledger) == [tickets[:4]]
    assert ledger.tickets_due(undrawn=0) == 4


def test_a_chief_waits_for_two_messages_of_a_batch_whose_ticket_nobody_holds():
    ledger = Ledger(2, paced=True, ahead=1, first=1000)
    first, second, third = ledger.issue(ledger.tickets_due(undrawn=0))
    waits = [ledger.lacking]
    for kind, ticket in (
        (DRAWN, first),
        (DRAWN, second),
        (DRAWN, third),
        (STAGED, third),
        (STAGED, first),
    ):
        tell(ledger, "worker %d" % ticket, kind, ticket)
        waits.append(ledger.lacking)
    assert waits == [4, 3, 2, 2, 1, 0]


@settings(max_examples=20, deadline=None)
@given(
    workers=st.integers(1, 12),
    size=st.integers(1, 8),
    most=st.floats(0.05, 4),
    seed=st.integers(0, 99),
)
def test_no_cluster_has_a_greater_mean_staleness_than_the_wanted_one(workers, size, most, seed):
    times = Times(demand=0.1, spread=0.5, slow_share=0.2, slow_factor=8)
    mode = SemiSync(size, in_flight=MeanStaleness(most))
    result = simulate(Cluster(workers, times=times), mode, 60 * size, seed)
    steps = sum(result.staleness.values()) / size
    # Those of before the measurement are late by less than M + ahead in all.
    assert result.mean_staleness * size * steps <= most * size * (steps + 1) + 1e-6


def test_workers_that_wait_for_others_reach_the_wanted_mean_staleness():
    times = Times(demand=0.1, spread=0.5)
    mode = SemiSync(8, in_flight=MeanStaleness(0.75))
    result = simulate(Cluster(16, times=times), mode, 4000)
    assert result.mean_staleness == pytest.approx(0.75, abs=0.01)


def test_auto_is_a_mean_staleness_of_one():
    with tf.Graph().as_default():
        auto = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.1), 4, in_flight="auto")
    assert auto.options.paced == MeanStaleness(1.0)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"in_flight": MeanStaleness(0)}, "greater than 0 and up to 100, not 0;"),
        ({"in_flight": MeanStaleness(101)}, "up to 100, not 101;"),
        ({"in_flight": MeanStaleness(True)}, "up to 100, not True;"),
        ({"in_flight": MeanStaleness(float("nan"))}, "up to 100, not nan;"),
        ({"in_flight": MeanStaleness("1")}, "up to 100, not '1';"),
        ({"in_flight": "many"}, "a whole number of 1 or more, not 'many'"),
        ({"in_flight": "auto", "paced": True}, "it has no use for in_flight"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, says):
    with tf.Graph().as_default(), pytest.raises(UsageError, match=says) as error:
        semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.1), 4, **arguments)
    assert "\n" not in str(error.value)


def simulated(*more):
    """What `semisync simulate` says of the mode semi-sync."""
    parser = argparse.ArgumentParser()
    command.configure(parser)
    line = ["--workers", "16", "--batches-per-step", "8", "--modes", "semi-sync", "--json", *more]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert command.run(parser.parse_args(line)) == 0
    return json.loads(printed.getvalue())["semi-sync"]


def test_the_simulator_foresees_what_a_mean_staleness_costs():
    free, bounded = (
        simulated("--spread", "0.5"),
        simulated("--spread", "0.5", "--mean-staleness", "1"),
    )
    assert bounded["mean_staleness"] < 1.01 < free["mean_staleness"]
    assert bounded["batches_per_second"] < free["batches_per_second"]
    with pytest.raises(UsageError, match="greater than 0 and up to 100, not 0.0;"):
        simulated("--mean-staleness", "0")
