"""Launchers among themselves, in memory and over a real server."""

import json
import signal

import pytest

from semisync.cluster.launch import director, member, running
from semisync.cluster.record import Shape
from tests.cluster.launch.job import ROOT, SLEEP, Job
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow


@pytest.fixture
def job(store, tmp_path, monkeypatch):
    monkeypatch.setattr(director, "LATE", 0.3)
    monkeypatch.setattr(director, "LOST", 0.3)
    monkeypatch.setattr(member, "LOOK_EVERY", 0.3)
    made = Job(store, Shape(ps=1, workers=2), tmp_path)
    yield made
    made.stop()


def test_the_servers_end_when_the_workers_have_ended(job):
    job.launch("ps", SLEEP)
    job.launch("worker", ["true"], 0)
    job.launch("worker", ["true"], 1)
    assert [job.ended(key).code for key in ("worker 0", "worker 1", "ps None")] == [0, 0, 0]


def test_a_leaders_node_of_somebody_else_ends_the_launcher_in_a_sentence(job, store, monkeypatch):
    monkeypatch.setattr(member, "WAKE_EVERY", 0.1)
    store.client().create(ROOT + "/leader", b"somebody's")
    job.launch("ps", SLEEP)
    assert "the node /job/leader in ZooKeeper does not hold what" in str(job.ended("ps None"))


def test_places_are_given_out_in_order_and_a_spare_waits(job):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, key="one")
    until(lambda: job.launchers["one"].name == "worker-0")
    job.launch("worker", ["sh", "-c", "exit 1"], key="two")
    assert job.ended("two").code == 10
    job.launch("worker", SLEEP, key="three")
    until(lambda: job.launchers["three"].name == "worker-1")
    job.launch("worker", SLEEP, deadline=0.5, key="spare")
    error = job.ended("spare")
    assert "there is no place for another one: worker 0 is on 127.0.0.1" in str(error)


def test_a_worker_that_has_ended_well_is_not_run_again_by_a_spare(job):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", ["true"], 1)
    assert job.ended("worker 1").code == 0
    job.launch("worker", ["true"], deadline=0.5, key="spare")
    assert "worker 1 has ended" in str(job.ended("spare"))


def test_a_command_is_started_again_at_the_same_address_within_limits(job, monkeypatch):
    monkeypatch.setattr(running, "LONGEST_REST", 0.1)
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("starts", "kill -9 $$"), 1, restarts=2)
    end = job.ended("worker 1")
    assert end.code == 10
    assert end.why == "the command on 127.0.0.1 ended with killed by SIGKILL after 3 starts"
    assert len(job.lines("starts")) == 3 and len(set(job.lines("starts"))) == 1
    assert not job.ends.get("worker 0")  # nothing changes for the others


def test_no_worker_is_started_or_started_again_once_the_chief_has_ended(job):
    shape, wait = Shape(ps=1, workers=3), "while [ ! -e {} ]; do sleep 0.05; done; exit {}"
    trained, over = job.folder / "trained", job.folder / "over"
    job.launch("ps", SLEEP, shape=shape)
    job.launch("worker", ["sh", "-c", wait.format(trained, 0)], 0, shape=shape)
    failing = job.write("failing", wait.format(over, 1))
    job.launch("worker", failing, 1, shape=shape, restarts=1000)
    until(lambda: job.lines("failing"))
    trained.touch()
    assert job.ended("worker 0").code == 0
    job.launch("worker", job.write("late", "exit 1"), 2, shape=shape, restarts=1000)
    assert job.ended("worker 2").code == 0
    over.touch()
    assert [job.ended(key).code for key in ("worker 1", "ps None")] == [0, 0]
    assert len(job.lines("failing")) == 1 and not job.lines("late")


def test_a_failed_chief_ends_the_job_for_all(job):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 1)
    job.launch("worker", ["sh", "-c", "exit 5"], 0)
    assert job.ended("worker 0").code == 10
    for key in ("ps None", "worker 1"):
        assert job.ended(key).code == 11
        assert (
            "worker 0 failed: the command on 127.0.0.1 ended with exit code 5" in job.ends[key].why
        )


@pytest.mark.long
def test_who_is_missing_is_named_meanwhile_and_at_the_deadline(job, monkeypatch, capfd):
    monkeypatch.setattr(member, "SAY_AFTER", 0.1)
    job.launch("worker", SLEEP, 1, deadline=2.0)
    end = job.ended("worker 1")
    assert end == (12, "ps 0, worker 0 did not come within 2 s")
    said = capfd.readouterr().err.splitlines()
    assert said == ["[worker 1] semisync launch: waiting for ps 0, worker 0"]


def test_launchers_that_were_told_other_numbers_refuse_to_work_together(job):
    job.launch("ps", SLEEP)
    until(lambda: job.launchers["ps None"].name == "ps-0")
    job.launch("worker", SLEEP, 0, shape=Shape(ps=1, workers=5))
    assert "started with --ps 1 --workers 5, and that of ps 0 on 127.0.0.1 with --ps 1" in str(
        job.ended("worker 0")
    )


@pytest.mark.long
def test_a_late_worker_is_reached_through_an_address_that_was_there_before(job):
    job.launch("ps", job.write("ps", "sleep 1000"))
    job.launch("worker", SLEEP, 0)
    until(lambda: job.lines("ps"))
    job.launch("worker", job.write("late", "sleep 1000"), 1)
    until(lambda: job.lines("late"))
    assert len(job.lines("ps")) == 1  # the server was not started again
    ours = job.launchers["worker 1"]._joined.port.number
    assert ':{}"'.format(ours) in job.lines("late")[0]
    assert ':{}"'.format(ours) not in job.lines("ps")[0]
    forwards = job.launchers["ps None"].running._forwards
    assert forwards.address("worker-1") in job.lines("ps")[0]
    assert job.launchers["ps None"].running.address_of("worker-1").endswith(":{}".format(ours))


def test_a_launcher_told_to_stop_ends_its_command_and_gives_up_its_place(job):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("one", "sleep 1000"), 1)
    until(lambda: job.lines("one"))
    job.launchers["worker 1"].stop(signal.SIGTERM)
    assert job.ended("worker 1").code == 143
    job.launch("worker", job.write("next", "true"), 1, key="next")
    assert job.ended("next").code == 0
    assert job.lines("next") == job.lines("one")  # at the address that the server knows


def test_a_worker_that_the_server_knows_elsewhere_is_refused(job):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("one", "sleep 1000"), 1)
    until(lambda: job.lines("one"))
    job.launchers["worker 1"].stop(signal.SIGTERM)
    job.ended("worker 1")
    job.launch("worker", ["true"], 1, key="moved", host="127.0.0.2")
    assert "start its launcher on that machine" in str(job.ended("moved"))
    assert "worker 0" not in job.ends and "ps None" not in job.ends


@pytest.mark.long
def test_workers_may_move_where_the_servers_reach_them_through_their_launcher(job):
    job.launch("ps", job.write("ps", "sleep 1000"), moving=True)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("one", "sleep 1000"), 1)
    until(lambda: job.lines("one") and job.lines("ps"))
    job.launchers["worker 1"].stop(signal.SIGTERM)
    job.ended("worker 1")
    job.launch("worker", job.write("moved", "sleep 1000"), 1, key="moved", host="127.0.0.2")
    until(lambda: job.lines("moved"))
    server = job.launchers["ps None"].running
    until(lambda: server.address_of("worker-1").startswith("127.0.0.2:"))
    assert server._forwards.address("worker-1") in job.lines("ps")[0]
    assert len(job.lines("ps")) == 1


def test_an_address_that_others_cannot_reach_is_refused(job):
    job.launch("ps", SLEEP, host="127.0.0.1")
    job.launch("worker", SLEEP, 0, host="10.1.2.3")
    job.launch("worker", SLEEP, 1, host="10.1.2.3")
    assert "ps 0 is at 127.0.0.1:" in str(job.ended("worker 0"))
    assert "give its launcher --host" in str(job.ended("ps None"))


def test_training_goes_on_when_the_session_is_lost(job, store):
    job.launch("ps", SLEEP)
    job.launch("worker", job.write("chief", "sleep 1000"), 0)
    job.launch("worker", SLEEP, 1)
    until(lambda: job.lines("chief"))
    for key in ("ps None", "worker 0"):
        client = job.clients[key]
        before = client.session
        store.expire(client)
        until(lambda client=client, before=before: client.session not in (None, before))
    watcher = store.client()
    names = ("ps-0", "worker-0", "worker-1")
    until(lambda: all(watcher.stat(ROOT + "/members/" + name) for name in names))
    assert len(job.lines("chief")) == 1 and job.ends == {}


def test_a_launcher_whose_place_was_taken_meanwhile_ends_its_command(job, store):
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("one", "sleep 1000"), 1)
    until(lambda: job.lines("one"))
    other = store.client()
    path = ROOT + "/members/worker-1"
    other.delete(path, -1)
    about = {"id": "another", "host": "there", "address": "there:1", "restarts": 0}
    other.create(path, json.dumps(about).encode(), ephemeral=True)
    assert job.ended("worker 1") == (13, "worker 1 is held by a launcher on there now")


@pytest.mark.long
def test_a_new_server_begins_the_job_anew_where_it_is_allowed(job):
    job.launch("ps", job.write("ps", "sleep 1000"), restarts=1)
    job.launch("worker", job.write("chief", "sleep 1000"), 0)
    job.launch("worker", SLEEP, 1)
    until(lambda: job.lines("chief"))
    job.launchers["ps None"].stop(signal.SIGKILL)
    job.ended("ps None")
    job.launch("ps", job.write("ps", "sleep 1000"), restarts=1, key="second")
    until(lambda: len(job.lines("chief")) == 2)
    assert job.lines("chief")[0] != job.lines("chief")[1]


@pytest.mark.long
def test_a_launcher_that_comes_after_the_job_ends_well_when_no_other_run_begins(job):
    job.launch("ps", SLEEP)
    for number in (0, 1):
        job.launch("worker", ["true"], number)
    for key in ("ps None", "worker 0", "worker 1"):
        assert job.ended(key).code == 0
    job.launch("worker", job.write("late", "true"), 1, deadline=1.0, key="late")
    assert job.ended("late") == (0, "the job has ended")
    assert not job.lines("late")


@pytest.mark.long
def test_the_same_job_runs_again_after_its_end(job):
    for run in ("first", "second"):
        job.launch("ps", SLEEP, key="ps " + run)
        for number in (0, 1):
            job.launch("worker", ["true"], number, key="{} {}".format(run, number))
        for key in ("ps " + run, run + " 0", run + " 1"):
            assert job.ended(key).code == 0
