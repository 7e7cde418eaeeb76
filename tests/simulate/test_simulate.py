"""What the simulator says where the answer is known, and what holds for every cluster."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semisync.common.errors import BadInput, UsageError
from semisync.pacing import MeanStaleness
from semisync.simulate import (
    SSP,
    Async,
    Cluster,
    Costs,
    SemiSync,
    SyncReplicas,
    Times,
    advise,
    simulate,
)
from semisync.staleness import Threshold

pytestmark = pytest.mark.one_tensorflow

FREE = Costs(*[0] * len(Costs._fields))._replace(accumulators=1)
_COSTLY = Costs(pull=0.01, push=0.01, apply=0.005, apply_step=0.01, latency=0.002)


def test_workers_that_nobody_holds_up_keep_their_own_pace():
    times = Times(0.03, 0.02, spread=0.2)  # without any spread each worker would keep its place
    result = simulate(Cluster(7, times=times, costs=FREE), Async(), 4000)
    assert result.batches_per_second == pytest.approx(7 / 0.05, rel=0.01)
    assert result.mean_staleness == pytest.approx(6 * 0.02 / 0.05, rel=0.05)


def test_a_message_takes_its_latency_four_times_a_batch():
    costs = FREE._replace(latency=0.01)
    result = simulate(Cluster(1, times=Times(0.0, 0.06), costs=costs), Async(), 500)
    assert result.batches_per_second == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize("servers", [1, 3])
def test_parameter_servers_at_their_limit_set_the_pace(servers):
    costs = FREE._replace(pull=0.004, push=0.006)
    cluster = Cluster(200, servers, Times(demand=0.01), costs, cores=2)
    result = simulate(cluster, Async(), 5000)
    assert result.batches_per_second == pytest.approx(2 * servers / 0.01, rel=0.03)
    assert result.server_load == pytest.approx(1.0, abs=0.03)


def test_synchronous_training_waits_for_the_slowest_of_each_step():
    workers, spread = 16, 0.5
    times = Times(demand=0.1, spread=spread)
    result = simulate(Cluster(workers, times=times, costs=FREE), SyncReplicas(workers), 20000)
    draws = np.random.RandomState(1).lognormal(-(spread**2) / 2, spread, [20000, workers])
    slowest = 0.1 * draws.max(axis=1).mean()
    assert result.steps_per_second == pytest.approx(1 / slowest, rel=0.03)


def test_backup_workers_waste_batches_and_do_not_wait_for_stragglers():
    times = Times(demand=0.1, slow_workers=1, slow_worker_factor=10)
    cluster = Cluster(8, times=times, costs=FREE)
    all_of_them = simulate(cluster, SyncReplicas(8), 2000)
    without_one = simulate(cluster, SyncReplicas(7), 2000)
    assert without_one.steps_per_second > 5 * all_of_them.steps_per_second
    assert all_of_them.fates.get("stale", 0) == 0 < without_one.fates["stale"]


def test_with_ssp_the_slowest_worker_sets_the_pace_of_all():
    times = Times(demand=0.1, slow_workers=1, slow_worker_factor=4)
    result = simulate(Cluster(5, times=times, costs=FREE), SSP(3), 2000)
    assert result.batches_per_second == pytest.approx(5 / 0.4, rel=0.02)


def test_paced_training_has_no_staleness_and_unpaced_training_no_waiting():
    times = Times(demand=0.1, spread=0.3)
    paced = simulate(Cluster(8, times=times, costs=FREE), SemiSync(8, paced=True), 2000)
    free = simulate(Cluster(8, times=times, costs=FREE), SemiSync(8, Threshold(4)), 2000)
    assert set(paced.staleness) == {0}
    assert free.waiting == pytest.approx(0.0, abs=1e-9)
    assert free.batches_per_second == pytest.approx(80, rel=0.03)


def test_a_trace_is_repeated_in_place_of_what_is_drawn():
    times = Times(traces=[(np.array([0.1, 0.0]), np.array([0.1, 0.2]))])
    result = simulate(Cluster(1, times=times, costs=FREE), Async(), 1000)
    assert result.batches_per_second == pytest.approx(2 / 0.4, rel=0.01)


@pytest.mark.long
def test_a_preempted_worker_is_away_and_does_its_batch_again():
    times = Times(demand=0.1, every=10.0, away=5.0)
    result = simulate(Cluster(50, times=times, costs=FREE), Async(), 50000)
    # Of every 15 s (and half a batch that is lost) a worker trains for 10.
    assert result.batches_per_second == pytest.approx(50 * 10 * 10 / 15.05, rel=0.05)


# Hypothesis would make up what is not given.
_DEFAULTS = {"staleness": st.none(), "on_stale": st.just("keep"), "in_flight": st.none()}
modes = st.one_of(
    st.just(Async()),
    st.builds(SSP, st.integers(0, 5)),
    st.builds(SyncReplicas, st.integers(1, 12)),
    st.builds(
        SemiSync,
        st.integers(1, 12),
        st.sampled_from([None, Threshold(0), Threshold(3)]),
        st.sampled_from(["keep", "drop"]),
        st.sampled_from([None, 1, 20, MeanStaleness(0.5)]),
    ),
    st.builds(SemiSync, st.integers(1, 12), paced=st.just(True), **_DEFAULTS),
)


@pytest.mark.long
@given(
    modes,
    st.integers(1, 10),
    st.builds(
        lambda pause, spread, share: Times(pause, 0.01, spread, share, 10.0),
        st.sampled_from([0.0, 0.02]),
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([0.0, 0.3]),
    ),
    st.sampled_from([FREE._replace(latency=0.001), _COSTLY]),
    st.sampled_from([None, 2]),
)
@settings(max_examples=60, deadline=None)
def test_no_cluster_comes_to_a_standstill_and_every_batch_is_counted(
    mode, workers, times, costs, shared
):
    cluster = Cluster(workers, 2, times, costs, shared_cores=shared)
    result = simulate(cluster, mode, 200, seed=3)
    assert result.batches_per_second > 0
    counted = sum(n for fate, n in result.fates.items() if fate in ("admitted", "decayed", "stale"))
    if not isinstance(mode, SyncReplicas):  # whose stale batches are not applied
        assert counted == sum(result.staleness.values())
    assert 0 <= result.waiting <= 1 + 1e-9
    assert simulate(cluster, mode, 200, seed=3) == result  # the seed fixes everything
    if isinstance(mode, SemiSync) and mode.on_stale == "drop" and mode.staleness is not None:
        assert max(result.staleness) <= mode.staleness.bound


@pytest.mark.long
def test_the_proposal_keeps_what_it_promises():
    times = Times(demand=0.08, spread=0.4, slow_share=0.05, slow_factor=5)
    costs = Costs(pull=0.02, push=0.02, apply=0.02)
    found = advise(Cluster(64, times=times, costs=costs), 1.5, None, 3000)
    cluster = Cluster(64, found.servers, times, costs)
    proposed = simulate(cluster, SemiSync(found.batches_per_step, Threshold(found.bound)), 3000)
    assert proposed.mean_staleness <= 1.5
    assert proposed.stale_share() < 0.01
    ample = simulate(cluster._replace(servers=1000), SemiSync(found.batches_per_step), 3000)
    assert proposed.batches_per_second > 0.95 * ample.batches_per_second
    fewer = cluster._replace(servers=found.servers - 1)
    less = simulate(fewer, SemiSync(found.batches_per_step), 3000)
    slower = less.batches_per_second < 0.985 * ample.batches_per_second
    assert slower or less.mean_staleness > 1.5


_NAN, _INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("cluster", "mode", "sentence"),
    [
        (Cluster(0), Async(), "the number of workers is a whole number of 1 or more, not 0"),
        (Cluster(2, servers=1.5), Async(), "the number of parameter servers"),
        (Cluster(2, costs=Costs(latency=_NAN)), Async(), "the cost latency"),
        (Cluster(2, costs=Costs(pull=_INF)), Async(), "the cost pull"),
        (Cluster(2, times=Times(demand=_NAN)), Async(), "a batch's demand"),
        (Cluster(2, times=Times(demand=0.0)), Async(), "batches take time"),
        (Cluster(2, times=Times(traces=[(np.zeros(3), np.zeros(3))])), Async(), "take time"),
        (Cluster(2, times=Times(slow_share=2.0, slow_factor=5)), Async(), "from 0 to 1, not 2.0"),
        (Cluster(2, times=Times(slow_share=0.1, slow_factor=-5)), Async(), "slow batches"),
        (Cluster(2, times=Times(slow_workers=3)), Async(), "from 0 to 2, not 3"),
        (Cluster(2, times=Times(slow_workers=2, slow_worker_factor=-1)), Async(), "slow workers"),
        (Cluster(2, times=Times(every=9.0, away=-5.0)), Async(), "is away"),
        (Cluster(2, times=Times(every=0.5, away=5.0)), Async(), "hardly ends a batch of 0.1 s"),
        (Cluster(2, times=Times(day=0.0)), Async(), "the length of a day"),
        (Cluster(2, times=Times(day=10.0, day_factor=-3)), Async(), "the day's load"),
        (Cluster(2), SyncReplicas(0), "aggregated"),
        (Cluster(2), SSP(-1), "the bound of SSP"),
        (Cluster(2), SemiSync(0), "batches_per_step"),
        (Cluster(2), SemiSync(2, in_flight=0), "in_flight"),
        (Cluster(2), SemiSync(2, on_stale="kept"), "'keep' or 'drop', not 'kept'"),
    ],
)
def test_what_cannot_be_is_one_sentence(cluster, mode, sentence):
    with pytest.raises(UsageError, match=sentence):
        simulate(cluster, mode, 100)


def test_a_seed_and_a_wish_that_cannot_be_met_are_refused():
    with pytest.raises(UsageError, match="the seed"):
        simulate(Cluster(2), Async(), 100, seed=-1)
    with pytest.raises(BadInput, match="mean staleness"):
        advise(Cluster(30, times=Times(spread=2.0)), 0.0, None, 500)
