"""What the leader decides from what it sees."""

import pytest

from semisync.cluster.launch import director
from semisync.cluster.launch.director import Sight, decide
from semisync.cluster.record import Shape

pytestmark = pytest.mark.one_tensorflow

SHAPE = Shape(ps=1, workers=3)
DEADLINE = 100.0
LINGER = 300.0


class Job:
    """What a leader sees, changed step by step."""

    def __init__(self, shape=SHAPE):
        self.shape, self.now, self._since = shape, 0.0, {}
        self.current, self.members, self.ends = None, {}, {}
        self.slow = set()  # places that are not ready to start

    def comes(self, *names, id="first", restarts=0):
        for name in names:
            about = {
                "id": name + id,
                "address": name + ":" + id,
                "restarts": restarts,
                "moving": False,
            }
            self.members[name] = about
        return self

    def goes(self, *names):
        for name in names:
            del self.members[name]
        return self

    def ends_with(self, code, *names):
        for name in names:
            self.ends[name] = {"id": self.current.members[name], "code": code, "why": "so"}
        return self

    def decide(self, after=0.0):
        """The decision after some seconds, which becomes the newest generation."""
        self.now += after
        decided = self._decide()
        if decided is not None and decided.content["started"] is None and not self.slow:
            decided = self._decide()
        return decided

    def _decide(self):
        number = self.current.number if self.current else 0
        ready = {(self.members[n]["id"], number) for n in self.members if n not in self.slow}
        sight = Sight(self.current, self.members, self.ends, ready, 7)
        decided = decide(self.shape, sight, self._waited, DEADLINE, LINGER)
        if decided is not None:
            self.current = decided
        return decided

    def _waited(self, what, is_so):
        if not is_so:
            self._since.pop(what, None)
            return 0.0
        return self.now - self._since.setdefault(what, self.now)

    @property
    def outcome(self):
        return self.current.content["outcome"]


def running(shape=SHAPE, **more):
    job = Job(shape).comes(*shape.places, **more)
    assert job.decide().number == 1
    return job


def test_a_job_begins_when_all_are_there():
    job = Job().comes("worker-0", "worker-1", "worker-2")
    assert job.decide(1000) is None
    begun = job.comes("ps-0").decide()
    assert begun.members["ps-0"] == "ps-0first"
    assert begun.content["addresses"]["worker-1"] == "worker-1:first"
    assert begun.content["outcome"] is None
    assert job.decide(1000) is None


def test_a_job_begins_without_the_late_but_not_without_the_chief():
    job = Job().comes("ps-0", "worker-1")
    assert job.decide(1000) is None
    job.comes("worker-0")
    assert job.decide() is None
    assert job.decide(director.LATE - 1) is None
    begun = job.decide(2)
    assert sorted(begun.members) == ["ps-0", "worker-0", "worker-1"]
    joined = job.comes("worker-2").decide()
    assert joined.number == begun.number
    assert joined.content["addresses"]["worker-2"] == "worker-2:first"
    assert joined.content["fixed"] == begun.content["fixed"]


def slow(*names, shape=SHAPE):
    """A job that has begun, in which some are not ready."""
    job = Job(shape).comes(*shape.places)
    job.slow.update(names)
    assert job.decide().content["started"] is None
    assert job.decide() is None  # they are waited for from now on
    return job


def test_commands_start_together_when_the_last_is_ready():
    job = slow("worker-1", "worker-2")
    assert job.decide(DEADLINE) is None
    job.slow = {"worker-2"}
    assert job.decide() is None
    job.ends_with(10, "worker-2")  # its files could not be written, perhaps
    assert job.decide().content["started"] == []
    assert job.decide(1000) is None


def test_at_the_deadline_those_start_who_are_ready_and_the_others_are_named():
    job = slow("worker-1", "worker-2")
    assert job.decide(DEADLINE) is None
    started = job.decide(director.LATE + 1).content
    assert (started["started"], started["outcome"]) == (["worker 1", "worker 2"], None)
    job = slow("ps-0", "worker-1")
    outcome = job.decide(DEADLINE + director.LATE + 1).content["outcome"]
    assert outcome["code"] == 11
    assert "ps 0 had not what the command needs within 100 s" in outcome["why"]


def test_nobody_waits_for_a_worker_that_was_lost_or_came_later():
    job = slow("worker-1", "worker-2")
    assert job.goes("worker-2").decide() is None
    job.slow = set()
    assert job.decide().content["started"] == []
    assert job.comes("worker-2", id="second").decide().content["started"] == []
    assert job.decide(1000) is None


def test_a_server_that_comes_anew_before_the_start_has_lost_nothing():
    job = slow("worker-1")
    job.goes("ps-0").decide()
    assert job.comes("ps-0", id="second").decide().number == 2


def handing_out(job, digest, url="there", id="first"):
    job.comes("worker-0", id=id)
    job.members["worker-0"]["files"] = {"digest": digest, "url": url}
    return job


def test_other_files_are_a_new_generation_and_the_same_ones_a_new_address():
    job = handing_out(Job().comes(*SHAPE.places), "a")
    begun = job.decide()
    assert (begun.content["files"]["digest"], begun.content["configuration"]) == ("a", 7)
    job.goes("worker-0").decide()
    moved = handing_out(job, "a", "here", id="second").decide()
    assert (moved.number, moved.content["files"]["url"]) == (1, "here")
    job.goes("worker-0").decide()
    assert job.current.content["files"]["url"] == "here"
    changed = handing_out(job, "b", id="third").decide()
    assert (changed.number, changed.content["files"]["digest"]) == (2, "b")
    assert job.decide(1000) is None


def test_a_job_ends_well_when_the_chief_and_all_workers_have_ended_well():
    job = running()
    assert job.current.content["over"] is None
    job.ends_with(0, "worker-0", "worker-1").goes("worker-0", "worker-1")
    assert job.decide().content["over"] == LINGER  # worker 2 trains still
    assert job.decide(LINGER - 1) is None
    ended = job.ends_with(0, "worker-2").goes("worker-2").decide()
    assert ended.content["outcome"]["code"] == 0
    assert job.decide(1000) is None


def test_a_worker_that_fails_or_is_lost_does_not_end_the_job():
    job = running()
    job.ends_with(10, "worker-1").goes("worker-1", "worker-2")
    assert job.decide() is None
    assert job.decide(1000) is None
    job.ends_with(0, "worker-0").goes("worker-0")
    assert job.decide().content["outcome"]["code"] == 0  # worker 2 was lost long ago


def test_the_end_waits_a_while_for_a_lost_worker():
    job = running()
    job.goes("worker-2").ends_with(0, "worker-0", "worker-1").goes("worker-0", "worker-1")
    assert job.decide().content["outcome"] is None
    assert job.decide(director.LOST - 1) is None
    job.comes("worker-2", id="second")
    assert job.decide(2).members["worker-2"] == "worker-2second"
    assert job.decide(LINGER - director.LOST) is None
    job.ends_with(0, "worker-2").goes("worker-2")
    assert job.decide().content["outcome"]["code"] == 0


def test_who_runs_on_after_the_chief_is_named_and_the_job_ends_well():
    job = running()
    job.ends_with(0, "worker-0", "worker-2").goes("worker-0", "worker-2").decide()
    assert job.decide(0) is None
    assert job.decide(LINGER) is None
    outcome = job.decide(1).content["outcome"]
    assert (outcome["code"], outcome["hung"]) == (0, ["worker 1"])
    assert "without worker 1, which had not ended 300 s after the chief" in outcome["why"]


@pytest.mark.parametrize("name", ["ps-0", "worker-0"])
def test_what_the_job_cannot_do_without_fails_it(name):
    job = running()
    outcome = job.ends_with(10, name).decide().content["outcome"]
    why = "{} failed: so".format(name.replace("-", " "))
    assert outcome == {"code": 11, "why": why, "hung": []}


@pytest.mark.parametrize("name", ["ps-0", "worker-0"])
def test_what_the_job_cannot_do_without_may_be_away_until_the_deadline(name):
    job = running()
    assert job.goes(name).decide() is None
    assert job.decide(DEADLINE - 1) is None
    outcome = job.decide(2).content["outcome"]
    assert outcome["code"] == 11
    assert "was lost, and nobody took its place within 100 s" in outcome["why"]


def test_a_new_chief_takes_over_and_nothing_changes_for_the_others():
    job = running()
    job.goes("worker-0").decide()
    taken = job.comes("worker-0", id="second").decide(50)
    assert (taken.number, taken.members["worker-0"]) == (1, "worker-0second")
    assert job.decide(1000) is None


def test_a_server_that_comes_anew_begins_all_anew_only_where_that_is_allowed():
    job = running()
    job.goes("ps-0").decide()
    began = job.comes("ps-0", id="second", restarts=2).decide()
    assert (began.number, began.content["addresses"]["ps-0"]) == (2, "ps-0:second")
    job.goes("ps-0").decide()
    outcome = job.comes("ps-0", id="third").decide().content["outcome"]
    assert outcome["code"] == 11 and "has lost its state" in outcome["why"]


def test_the_end_of_an_earlier_run_means_nothing_in_the_next():
    job = running()
    job.ends_with(0, "worker-0", "worker-1", "worker-2").decide()
    assert job.outcome["code"] == 0
    job.goes(*SHAPE.places)
    assert job.decide(1000) is None
    began = job.comes(*SHAPE.places, id="second").decide()
    assert began.number == 2 and began.content["outcome"] is None
    assert job.decide(1000) is None


def test_after_a_crash_of_everything_the_next_run_begins():
    job = running()
    job.goes(*SHAPE.places)
    job.decide()
    assert job.comes(*SHAPE.places, id="second").decide().number == 2
