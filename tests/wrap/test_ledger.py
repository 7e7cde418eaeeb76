"""The chief's account of tickets, without TensorFlow: any order of messages, any losses."""

import collections

from hypothesis import given
from hypothesis import strategies as st

from semisync.chief.ledger import Ledger
from semisync.fate import Fate
from semisync.transport.messages import (
    ALIVE,
    DRAWN,
    JOINED,
    LEFT,
    NEVER_DRAWN,
    NONFINITE,
    REPEATS,
    STAGED,
    WITHHELD,
    Message,
)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def tell(ledger, member, kind, ticket=0, token=0):
    drawn = ticket if kind == DRAWN else NEVER_DRAWN
    ledger.receive(Message(member, kind, ticket, token, waited=0, drawn=drawn))


def draw_and_stage(ledger, tickets, member="worker", token=0):
    for ticket in tickets:
        tell(ledger, member, DRAWN, ticket)
        tell(ledger, member, STAGED, ticket, token)


def within(bound):
    """The weights of a threshold."""
    return lambda staleness: [1.0 if s <= bound else 0.0 for s in staleness]


def apply_all(ledger, clock=0, bound=10**9):
    """Applies every whole global batch that is there; returns the tickets, step by step."""
    steps = []
    for _ in range(len(ledger.pending) + 1):
        weighed = ledger.next_global_batch(clock, within(bound))
        if weighed is None:
            return steps
        steps.append([entry.commit.ticket for entry in weighed])
        ledger.book(len(steps), weighed)
    raise AssertionError("more global batches than there are batches")


# What may happen to a run: (what, a number that chooses the ticket, the worker).
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["issue", "draw", "stage", "withhold", "again", "leave", "foreign", "join", "wait"]
        ),
        st.integers(0, 50),
        st.sampled_from(["/job:worker/task:0 a 1", "/job:worker/task:0 b 2", "/ c 3"]),
    ),
    max_size=60,
)


PACES = st.sampled_from([{}, {"paced": True}, {"paced": True, "ahead": 2}])


@given(EVENTS, st.integers(1, 5), PACES, st.booleans())
def test_every_ticket_is_accounted_for_once(events, size, pace, keep):
    time = Clock()
    ledger = Ledger(size, keep_stale=keep, patience=9, first=1000, now=time, **pace)
    issued, applied = [], []
    for what, number, member in events:
        ticket = issued[number % len(issued)] if issued else 1
        if what == "issue":
            issued += ledger.issue(ledger.tickets_due(undrawn=0))
        elif what == "foreign":
            tell(ledger, member, STAGED, number)
        elif what == "wait":
            time.now += 5.0
            ledger.lose_the_silent(undrawn=number % 4)
        elif what == "again":
            draw_and_stage(ledger, [ticket, ticket], member)
        else:
            kinds = {"draw": DRAWN, "stage": STAGED, "withhold": WITHHELD}
            tell(ledger, member, dict(kinds, leave=LEFT, join=JOINED)[what], ticket, number)
        applied += [ticket for step in apply_all(ledger, 9, bound=3) for ticket in step]
        assert ledger.balance()
    assert len(applied) == len(set(applied))
    assert set(applied) <= set(issued)
    ends = collections.Counter(
        batch["ticket"]
        for event in ledger.events
        if event["event"] != "issued"
        for batch in event.get("batches", [event])
    )
    assert set(ends.values()) <= {1}
    assert set(ends) <= set(issued)


def test_unpaced_tickets_are_always_waiting():
    ledger = Ledger(4, first=1000)
    assert ledger.tickets_due(undrawn=0) == 8
    assert ledger.tickets_due(undrawn=7) == 1
    for worker in range(9):
        tell(ledger, "worker %d" % worker, JOINED)
    assert ledger.tickets_due(undrawn=3) == 15


def test_a_chief_that_falls_behind_stops_handing_out_tickets():
    ledger = Ledger(4, first=1000)
    staged = 0
    for _ in range(9):
        tickets = ledger.issue(ledger.tickets_due(undrawn=0))
        draw_and_stage(ledger, tickets)
        staged += len(tickets)
    assert tickets == [] and staged == 8
    apply_all(ledger)
    assert ledger.tickets_due(undrawn=0) == 8


def test_paced_tickets_are_m_a_step():
    ledger = Ledger(3, paced=True, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 3
    draw_and_stage(ledger, tickets[:2])
    assert ledger.tickets_due(undrawn=0) == 0
    draw_and_stage(ledger, tickets[2:])
    assert apply_all(ledger) == [tickets]
    assert ledger.tickets_due(undrawn=0) == 3


def test_a_paced_chief_waits_for_what_announces_a_batch_and_for_the_batch():
    ledger = Ledger(2, paced=True, first=1000)
    first, second = ledger.issue(ledger.tickets_due(undrawn=0))
    waits = [ledger.lacking]
    for kind, ticket in ((DRAWN, first), (STAGED, first), (DRAWN, second), (STAGED, second)):
        tell(ledger, "worker", kind, ticket)
        waits.append(ledger.lacking)
    assert waits == [4, 3, 2, 1, 0]


def test_an_unpaced_chief_waits_for_as_many_messages_as_it_lacks_batches():
    ledger = Ledger(2, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert ledger.lacking == 2
    draw_and_stage(ledger, tickets[:1])
    assert ledger.lacking == 1


def test_in_flight_bounds_the_tickets_that_are_out():
    ledger = Ledger(4, in_flight=2, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 2
    tell(ledger, "worker", DRAWN, tickets[0])
    assert ledger.tickets_due(undrawn=1) == 0
    assert ledger.lacking == 1  # of four: the tickets of the others come with this one
    tell(ledger, "worker", STAGED, tickets[0])
    assert ledger.tickets_due(undrawn=1) == 1


def test_each_fate_is_told_to_the_job_state_once():
    ledger = Ledger(2, first=1000)
    tickets = ledger.issue(4)
    for ticket, token in zip(tickets[:2], (9, 2)):
        draw_and_stage(ledger, [ticket], token=token)
    tell(ledger, "worker", NONFINITE, tickets[2])
    apply_all(ledger, clock=9, bound=3)
    ledger.lose(tickets[3])
    assert sorted(ledger.drain("settled")) == [
        (tickets[0], Fate.ADMITTED, 0),
        (tickets[1], Fate.STALE, 7),
        (tickets[2], Fate.NONFINITE, -1),
        (tickets[3], Fate.LOST, -1),
    ]
    assert ledger.drain("settled") == []


def test_the_slot_of_a_batch_that_is_not_finite_is_anothers():
    ledger = Ledger(2, paced=True, first=1000)
    first, second = ledger.issue(ledger.tickets_due(undrawn=0))
    for member, ticket in (("a", first), ("b", second)):
        tell(ledger, member, DRAWN, ticket)
        tell(ledger, member, NONFINITE, ticket)
    assert (ledger.broken, ledger.broken_of) == (2, "b")
    assert ledger.tickets_due(undrawn=0) == 2
    draw_and_stage(ledger, ledger.issue(1), "a")
    assert ledger.broken == 0 and ledger.balance()


def test_a_paced_ticket_that_comes_back_or_is_lost_is_replaced():
    time = Clock()
    ledger = Ledger(3, paced=True, patience=10, first=1000, now=time)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    tell(ledger, "a", DRAWN, tickets[0])
    tell(ledger, "a", LEFT, tickets[0])
    assert ledger.tickets_due(undrawn=2) == 1
    tell(ledger, "b", DRAWN, tickets[1])
    time.now = 11.0
    assert ledger.lose_the_silent(undrawn=2) == ["b"]
    assert ledger.tickets_due(undrawn=2) == 1


def test_a_ticket_that_no_worker_announced_is_given_back_long_before_patience_ends():
    time = Clock()
    ledger = Ledger(2, patience=100, first=1000, now=time)
    tickets = ledger.issue(5)
    assert ledger.lose_the_silent(undrawn=4) == []
    time.now = 6.0
    assert ledger.lose_the_silent(undrawn=4) == []
    assert list(ledger.outstanding) == tickets[1:]
    assert ledger.fates["returned"] == 1


def test_a_sign_of_life_keeps_a_ticket_and_brings_nobody_back_who_has_left():
    time = Clock()
    ledger = Ledger(2, patience=10, first=1000, now=time)
    held, other = ledger.issue(2)
    tell(ledger, "slow", DRAWN, held)
    tell(ledger, "silent", DRAWN, other)
    for time.now in (9.0, 18.0):
        tell(ledger, "slow", ALIVE)
        silent = ledger.lose_the_silent(undrawn=0)
    assert silent == ["silent"]
    assert list(ledger.outstanding) == [held]
    tell(ledger, "slow", LEFT, held)
    tell(ledger, "slow", ALIVE)
    assert ledger.members == {}


def test_a_process_started_again_gives_up_its_predecessors_ticket():
    ledger = Ledger(2, first=1000)
    (ticket,) = ledger.issue(1)
    tell(ledger, "/job:worker/task:1 host:7 old", DRAWN, ticket)
    tell(ledger, "/job:worker/task:2 host:8 other", JOINED)
    assert ledger.fates["lost"] == 0
    tell(ledger, "/job:worker/task:1 host:9 new", JOINED)
    assert ledger.fates["lost"] == 1
    assert set(ledger.members) == {
        "/job:worker/task:1 host:9 new",
        "/job:worker/task:2 host:8 other",
    }


def test_a_ticket_that_a_replaced_process_still_draws_is_given_back():
    old, new = "/job:worker/task:1 host:7 old", "/job:worker/task:1 host:9 new"
    ledger = Ledger(2, first=1000)
    first, second = ledger.issue(2)
    tell(ledger, old, DRAWN, first)
    tell(ledger, new, JOINED)
    ledger.receive(Message(old, STAGED, first, token=0, waited=0, drawn=second))
    assert set(ledger.members) == {new}
    assert +ledger.fates == {"issued": 2, "lost": 1, "late": 1, "returned": 1}
    assert not ledger.outstanding and not ledger.pending


def test_who_begins_again_repeats_nothing():
    ledger = Ledger(2, first=1000)
    first, second = ledger.issue(2)
    draw_and_stage(ledger, [first])
    tell(ledger, "worker", REPEATS, first)
    tell(ledger, "worker", JOINED)
    draw_and_stage(ledger, [second])
    assert [commit.ticket for commit in ledger.pending] == [first, second]


def test_another_draw_gives_up_the_ticket_of_a_run_that_failed():
    ledger = Ledger(2, first=1000)
    first, second = ledger.issue(2)
    tell(ledger, "worker", DRAWN, first)
    tell(ledger, "worker", DRAWN, second)
    assert ledger.fates["lost"] == 1
    assert list(ledger.outstanding) == [second]


def test_what_a_lost_ticket_may_have_left_is_swept_and_never_applied():
    time = Clock()
    ledger = Ledger(1, patience=10, first=1000, now=time)
    (ticket,) = ledger.issue(1)
    tell(ledger, "worker", DRAWN, ticket)
    time.now = 11.0
    ledger.lose_the_silent(undrawn=0)
    assert ledger.to_sweep() == []
    time.now = 22.0
    assert ledger.to_sweep() == [ticket]
    tell(ledger, "worker", STAGED, ticket)
    assert apply_all(ledger) == []
    assert ledger.to_sweep() == [ticket]


def test_a_batch_of_an_earlier_run_changes_nothing_and_is_swept():
    earlier, ledger = Ledger(1, first=1000), Ledger(1, first=2000)
    ledger.issue(2)
    tickets = earlier.issue(2)
    draw_and_stage(ledger, tickets)
    assert apply_all(ledger) == []
    assert sorted(ledger.to_sweep()) == tickets
    assert ledger.balance()


def test_a_stale_batch_keeps_its_slot_or_gives_it_back():
    kept, dropped = (Ledger(2, keep_stale=keep, first=1000) for keep in (True, False))
    for ledger in (kept, dropped):
        tickets = ledger.issue(3)
        for ticket, token in zip(tickets, (2, 9, 9)):
            draw_and_stage(ledger, [ticket], token=token)
    assert apply_all(kept, clock=9, bound=3) == [[1000, 1001]]
    assert apply_all(dropped, clock=9, bound=3) == [[1001, 1002]]
    assert kept.fates["stale"] == dropped.fates["stale"] == 1
    assert dropped.to_sweep() == [1000]


def test_a_withheld_batch_weighs_nothing_and_leaves_nothing():
    ledger = Ledger(1, keep_stale=False, first=1000)
    (ticket,) = ledger.issue(1)
    tell(ledger, "worker", DRAWN, ticket)
    tell(ledger, "worker", WITHHELD, ticket, 9)
    assert apply_all(ledger, clock=9) == []
    assert ledger.fates["stale"] == 1
    assert ledger.to_sweep() == []


def test_a_token_ahead_of_the_clock_counts_as_the_oldest():
    ledger = Ledger(1, first=1000)
    draw_and_stage(ledger, ledger.issue(1), token=50)
    assert ledger.next_global_batch(7, within(9))[0].staleness == 7


def test_members_come_and_go():
    time = Clock()
    ledger = Ledger(2, patience=5, first=1000, now=time)
    first, second = ledger.issue(2)
    tell(ledger, "a", JOINED)
    time.now = 3.0
    tell(ledger, "b", DRAWN, first)
    assert ledger.holders() == [("b", 0.0)]
    tell(ledger, "b", STAGED, first)
    assert ledger.holders() == []
    tell(ledger, "b", DRAWN, second)
    assert set(ledger.members) == {"a", "b"}
    time.now = 6.0
    assert ledger.lose_the_silent(undrawn=1) == []
    assert set(ledger.members) == {"b"}
    tell(ledger, "b", LEFT, second)
    assert ledger.members == {} and ledger.fates["returned"] == 1


def test_what_is_out_when_pacing_begins_counts_for_the_next_global_steps():
    ledger = Ledger(3, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 6
    ledger.pace(True)
    assert ledger.tickets_due(undrawn=6) == 0  # two global steps are under way
    for number, ticket in enumerate(tickets):
        draw_and_stage(ledger, [ticket], "worker %d" % number)
    assert apply_all(ledger, 0) == [tickets[:3], tickets[3:]]
    assert ledger.tickets_due(undrawn=0) == 3
    ledger.pace(False)
    assert ledger.tickets_due(undrawn=0) > 3


def test_to_go_on_pacing_issues_no_ticket_and_takes_none_back():
    ledger = Ledger(3, paced=True, ahead=2, first=1000)
    for due in (5, 3, 3):
        ledger.pace(True)
        tickets = ledger.issue(ledger.tickets_due(undrawn=0))
        assert len(tickets) == due
        draw_and_stage(ledger, list(ledger.outstanding)[:3])
        apply_all(ledger)


@given(EVENTS, st.integers(1, 4), st.integers(0, 12), st.integers(0, 12))
def test_no_ticket_is_forgotten_when_pacing_begins_and_ends(events, size, begins, ends):
    ledger = Ledger(size, patience=9, first=1000, now=Clock())
    issued = []
    for place, (what, number, member) in enumerate(events):
        ledger.pace(begins <= place < ends)
        issued += ledger.issue(ledger.tickets_due(undrawn=0))
        # Whatever came before, the next global batch can come together.
        assert len(ledger.outstanding) + len(ledger.pending) >= size
        ticket = issued[number % len(issued)]
        kinds = {"draw": DRAWN, "stage": STAGED, "withhold": WITHHELD, "leave": LEFT}
        tell(ledger, member, kinds.get(what, DRAWN), ticket, number)
        apply_all(ledger, 9, bound=3)
        assert ledger.balance()
