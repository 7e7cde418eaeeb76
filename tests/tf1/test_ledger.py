"""The chief's account of tickets, without TensorFlow: any order of messages, any losses."""

from hypothesis import given
from hypothesis import strategies as st

from semisync.ledger import GIVEN_BACK, JOINED, NO_TICKET, Applied, Ledger


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def apply_all(ledger):
    """Applies every whole global batch that is there; returns the tickets, step by step."""
    steps = []
    while True:
        commits = ledger.next_global_batch()
        if commits is None:
            return steps
        tickets = [commit.ticket for commit in commits]
        steps.append(tickets)
        ledger.book(Applied(len(steps), commits, [0] * len(commits), [1.0] * len(commits)))


# What may happen to a run: (what, a number that chooses the ticket or the worker).
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["issue", "commit", "again", "give back", "foreign", "join", "lose"]),
        st.integers(0, 50),
    ),
    max_size=60,
)


@given(EVENTS, st.integers(1, 5), st.booleans())
def test_every_ticket_is_accounted_for_once(events, size, paced):
    ledger = Ledger(size, paced=paced, first=1000)
    issued, applied = [], []
    for what, number in events:
        if what == "issue":
            issued += ledger.issue(ledger.tickets_due(undrawn=0))
        elif what == "join":
            ledger.receive("worker", NO_TICKET, JOINED)
        elif what == "foreign":
            ledger.receive("ghost", number, 0)
        elif what == "lose":
            ledger.presume_lost(ledger.in_hands(undrawn=0))
        elif issued:
            ticket = issued[number % len(issued)]
            ledger.receive("worker", ticket, GIVEN_BACK if what == "give back" else number)
            if what == "again":
                ledger.receive("worker", ticket, number)
        applied += [ticket for step in apply_all(ledger) for ticket in step]
        assert ledger.balance()
    assert len(applied) == len(set(applied))
    assert set(applied) <= set(issued)
    assert len(issued) == len(set(issued))


def test_unpaced_tickets_are_always_waiting():
    ledger = Ledger(4, first=1000)
    assert ledger.tickets_due(undrawn=0) == 4
    assert ledger.tickets_due(undrawn=3) == 1
    for worker in range(9):
        ledger.receive("worker %d" % worker, NO_TICKET, JOINED)
    assert ledger.tickets_due(undrawn=3) == 6


def test_paced_tickets_are_m_a_step():
    ledger = Ledger(3, paced=True, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 3
    for ticket in tickets[:2]:
        ledger.receive("worker", ticket, 0)
    assert ledger.tickets_due(undrawn=0) == 0
    ledger.receive("worker", tickets[2], 0)
    assert apply_all(ledger) == [tickets]
    assert ledger.tickets_due(undrawn=0) == 3


def test_a_paced_ticket_that_comes_back_or_is_lost_is_replaced():
    ledger = Ledger(3, paced=True, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    ledger.receive("worker", tickets[0], GIVEN_BACK)
    assert ledger.tickets_due(undrawn=2) == 1
    ledger.presume_lost(ledger.in_hands(undrawn=1))
    assert ledger.tickets_due(undrawn=1) == 1


def test_a_batch_of_an_earlier_run_changes_nothing():
    earlier, ledger = Ledger(1, first=1000), Ledger(1, first=2000)
    ledger.issue(2)
    for ticket in earlier.issue(2):
        ledger.receive("worker", ticket, 0)
    assert ledger.next_global_batch() is None
    assert ledger.fates["foreign"] == 2
    assert ledger.balance()


def test_a_batch_that_was_presumed_lost_still_counts_when_it_comes():
    ledger = Ledger(1, first=1000)
    (ticket,) = ledger.issue(1)
    ledger.presume_lost(ledger.in_hands(undrawn=0))
    ledger.receive("worker", ticket, 5)
    assert apply_all(ledger) == [[ticket]]


def test_a_paced_ticket_that_comes_after_all_is_not_replaced_again():
    ledger = Ledger(2, paced=True, first=1000)
    tickets = ledger.issue(ledger.tickets_due(undrawn=0))
    ledger.presume_lost(tickets[:1])
    tickets += ledger.issue(ledger.tickets_due(undrawn=0))
    assert len(tickets) == 3
    for ticket in tickets:
        ledger.receive("worker", ticket, 0)
    assert apply_all(ledger) == [tickets[:2]]
    assert ledger.tickets_due(undrawn=0) == 1  # one batch of the next step is pending already


def test_only_drawn_tickets_are_presumed_lost():
    ledger = Ledger(1, first=1000)
    tickets = ledger.issue(5)
    assert ledger.in_hands(undrawn=2) == tickets[:3]
    ledger.presume_lost(tickets[:3])
    assert ledger.in_hands(undrawn=2) == []


def test_members_come_and_go():
    clock = Clock()
    ledger = Ledger(2, first=1000, clock=clock)
    first, second = ledger.issue(2)
    ledger.receive("a", NO_TICKET, JOINED)
    ledger.receive("b", first, 0)
    assert set(ledger.members) == {"a", "b"}
    clock.now = 3.0
    assert ledger.seconds_since_news() == 3.0
    ledger.receive("b", second, GIVEN_BACK)
    assert set(ledger.members) == {"a"}
    assert ledger.seconds_since_news() == 0.0
