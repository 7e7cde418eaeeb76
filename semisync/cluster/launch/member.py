"""One launcher: takes a place, runs the command in it, and ends with the job.

The protocol is in `semisync.cluster.launch`. All that happens wakes one loop: ZooKeeper's news,
the end of the command, a signal. What the loop asks ZooKeeper fails at once while there is no
connection, and is asked again later; the command runs on meanwhile.
"""

import contextlib
import threading
import time
import uuid
from typing import Any, Optional

from semisync.cluster import record
from semisync.cluster.files import configurations
from semisync.cluster.launch import codes
from semisync.cluster.launch.codes import End
from semisync.cluster.launch.director import Director
from semisync.cluster.launch.joining import join
from semisync.cluster.launch.order import Order
from semisync.cluster.launch.output import Output
from semisync.cluster.launch.running import Running
from semisync.cluster.launch.shipment import Shipment
from semisync.cluster.record import spoken
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper import membership
from semisync.cluster.zookeeper.client import BadVersion, Client, NodeExists, Unavailable
from semisync.cluster.zookeeper.generation import Generation
from semisync.cluster.zookeeper.leader import Deposed, Election, boot_clock
from semisync.cluster.zookeeper.membership import Taken

WAKE_EVERY = 1.0  # seconds
LOOK_EVERY = 5.0  # seconds between two looks at ZooKeeper without news
SAY_AFTER = 10.0  # seconds of waiting after which the launcher names the missing


class Launcher:
    """Runs until the command, the job or the launcher is to end.

    Args:
        client: a `Client`.
        root: path of the job.
        order: an `Order`.
    """

    def __init__(self, client: Client, root: str, order: Order) -> None:
        self._client, self._root, self._order = client, root, order
        self._id = uuid.uuid4().hex
        self._told = threading.Event()  # there is something to look at
        self._news = threading.Event()  # of it, in ZooKeeper
        self._stopped = threading.Event()
        self._signal = 0
        self.name = order.role  # of the place, once there is one
        self.output = Output(lambda: spoken(self.name))
        self.running = Running(order, self.output, self._hear)
        self._director: Any = None
        self._shipment: Optional[Shipment] = None
        self._generation: Optional[Generation] = None  # the newest that is known
        self._looked_at = 0.0
        self._said: Any = None  # by the chief, and not written down yet
        self._is_away = False
        self._told_ready: Any = None
        self._say_after = SAY_AFTER
        # The state of the leader's node, and when it was first seen so.
        self._leader_seen: Any = (None, time.monotonic())

    def stop(self, signal: int) -> None:
        """Has `run` end the command and return 128 + signal; called from another thread."""
        self._signal = signal
        self._stopped.set()
        self._told.set()

    def run(self) -> End:
        """Does all of it; returns how it ended.

        Raises:
            SemisyncError: the launcher's arguments do not fit the job.
        """
        try:
            return self._run()
        finally:
            self.running.stop()
            if self._shipment is not None:
                self._shipment.close()

    def _run(self):
        order = self._order
        about = {
            "id": self._id,
            "host": order.host,
            "shape": order.shape._asdict(),
            "restarts": order.restarts,
            "moving": order.moving,
            "files": None,
        }
        if order.ship or order.config:
            self._shipment = Shipment(list(order.ship), order.config, order.host)
            about["files"] = self._shipment.about
        joined = join(self._client, self._root, order, about, self._stopped)
        if joined is None:
            return self._stopped_end()
        self.name, self._joined = joined.name, joined
        election = self._stand()
        self._client.listen(self._hear)
        try:
            return self._until_the_end()
        finally:
            self.running.stop()
            joined.port.close()
            if election is not None:
                election.resign()
            with contextlib.suppress(Unavailable):  # the session expires anyway
                joined.membership.leave()

    def _stand(self):
        """Stands for election, if this place's launchers may lead; returns the `Election`."""
        order = self._order
        if self.name not in order.shape.candidates:
            return None
        election = Election(
            self._client, self._root, self._id, spoken(self.name), won=self._told.set
        )
        self._director = Director(
            self._client,
            election,
            self._root,
            order.shape,
            order.deadline,
            order.linger,
            boot_clock,
            self._hear,
        )
        election.start()
        return election

    def _until_the_end(self):
        begun = time.monotonic()
        while True:
            self._told.wait(WAKE_EVERY)
            self._told.clear()
            if self._stopped.is_set():
                return self._stopped_end()
            self._tell_of_connection()
            try:
                self._meet()
            except Taken as taken:
                why = "{} is held by a launcher on {} now"
                return End(
                    codes.PLACE_LOST, why.format(spoken(self.name), taken.holder.get("host"))
                )
            except (Unavailable, Deposed, BadVersion, NodeExists):
                pass  # looked at again soon
            end = self._act() or self._given_up(begun)
            if end is not None:
                return end

    def _stopped_end(self):
        return End(128 + self._signal, "it was stopped by signal {}".format(self._signal))

    def _tell_of_connection(self):
        is_away = self._client.session is None
        if is_away != self._is_away:
            self._is_away = is_away
            self.output.say(
                "ZooKeeper is away; the command goes on" if is_away else "ZooKeeper is back"
            )

    def _meet(self):
        """Holds the place, leads if it is this launcher's turn, and reads the newest generation."""
        if self._director is not None:
            self._director.step()
        self._report()
        now = time.monotonic()
        if not self._news.is_set() and now - self._looked_at < LOOK_EVERY:
            return
        self._news.clear()
        self._joined.membership.register()
        seat = self._client.stat(self._root + "/leader")
        if seat != self._leader_seen[0]:
            self._leader_seen = seat, now
        self._generation = generations.read(self._client, self._root, self._hear)
        self._looked_at = now
        self._configure()

    def _configure(self):
        """Has the newest configuration in its place, once the files are there."""
        generation, workplace = self._generation, self.running.workplace
        if generation is None or not self._belongs_to(generation):
            return
        if self.running.has_files(generation) and workplace.config:
            after = max(workplace.version, generation.content["configuration"])
            found = configurations.newest(self._client, self._root, after, self._hear)
            workplace.configure(found)

    def _tell_ready(self, generation):
        """Tells the leader, once in a session, that the command can start."""
        ready = generation.number, self._client.session
        if self.running.workplace.is_ready and ready != self._told_ready:
            record.write_ready(self._client, self._root, self._id, generation.number)
            self._told_ready = ready

    def _report(self):
        """Records the chief's latest report, where it is new."""
        self._said = self.running.report.news() or self._said
        if self._said is not None:
            record.write_training(self._client, self._root, self._said)
            self._said = None

    def _hear(self):
        """There is news from ZooKeeper: its client's callback."""
        self._news.set()
        self._told.set()

    def _belongs_to(self, generation):
        """Whether a generation has this launcher in it."""
        return generation is not None and generation.members.get(self.name) == self._id

    def _act(self):
        """Obeys the newest generation; returns the end if it has come."""
        generation = self._generation
        if generation is None or not self._belongs_to(generation):
            return None
        outcome = record.outcome_of(generation)
        if outcome is not None:
            if outcome["hung"]:
                self.output.say("warning: {}".format(outcome["why"]))
            return End(outcome["code"], outcome["why"])
        end = self.running.follow(self.name, generation)
        try:
            if end is None:
                if not record.is_started(generation):
                    self._tell_ready(generation)
                return None
            self._report()  # the command's last report of the training
            record.write_end(self._client, self._root, self.name, self._id, end.code, end.why)
        except Unavailable:
            return None  # the leader must learn of it: again soon
        return end

    def _given_up(self, begun):
        """The launcher's end, if a process, or a leader, has not come before the deadline."""
        now, deadline = time.monotonic(), self._order.deadline
        if self._belongs_to(self._generation):
            # Polled state is seen that many seconds late.
            if now - self._leader_seen[1] <= deadline + 2 * LOOK_EVERY:
                return None
            why = "nobody led the job, or ZooKeeper was away, for {:.0f} s"
            return End(codes.JOB_FAILED, why.format(deadline))
        if now - begun > self._say_after:
            self._say_after = float("inf")
            self.output.say("waiting for {}".format(self._missing()[0]))
        if now - begun < deadline:
            return None
        missing, nobody_came = self._missing()
        why = "{} did not come within {:.0f} s".format(missing, deadline)
        outcome = self._generation and record.outcome_of(self._generation)
        if nobody_came and outcome and outcome["code"] == codes.DONE:
            self.output.say("the job has ended, and for another run " + why)
            return End(codes.DONE, "the job has ended")
        return End(codes.MISSING, why)

    def _missing(self):
        """The missing processes, for people, and whether these are all the required ones."""
        required = self._order.shape.required
        try:
            here = membership.members(self._client, self._root)
        except Unavailable:
            return "ZooKeeper", False
        missing = [name for name in required if name not in here]
        spoken_of = ", ".join(map(spoken, missing)) or "a leader that takes this launcher in"
        return spoken_of, len(missing) == len(required)
