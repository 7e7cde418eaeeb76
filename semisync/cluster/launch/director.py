"""The leader's part in a job: when it begins, who belongs to it, when it ends.

`decide` is a function of what can be seen and of how long it has been seen:

1. A generation begins when all that the job requires are there, and either all the others or LATE
   seconds have passed. It starts over when nobody of the earlier one is left, as after its end or
   a crash of everything.
2. Its commands start together, once every launcher in it is ready, which takes a while where the
   job has files. DEADLINE seconds later the job fails if one is missing that it requires, and
   names it; without the others it starts.
3. While it runs, a worker that comes or is replaced is written down; the others need not know.
4. A parameter server that is replaced has lost its state: the next generation begins, in which all
   processes start again, if its launcher allows restarts; else the job fails. The next generation
   begins too when the chief's launcher comes again with other files.
5. The job fails when a required process has ended in failure, or has been lost for DEADLINE
   seconds. It is over when the chief has ended well: the last checkpoint is written. It ends well
   when every other worker has ended, or has been lost for LOST seconds, or LINGER seconds later:
   whoever still runs then hangs, is named, and is stopped by its launcher.
"""

import threading
import time
from typing import Any, Dict, NamedTuple, Optional, Set, Tuple

from semisync.cluster import record
from semisync.cluster.files import configurations
from semisync.cluster.launch import codes
from semisync.cluster.record import PS, role_of, spoken
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper import membership
from semisync.cluster.zookeeper.generation import Generation

LATE = 5.0  # seconds
GATHER = 0.5  # seconds at most between news and a look
LOST = 30.0  # seconds that the end of a job waits for a lost worker to come back


class Sight(NamedTuple):
    """The observed state of a job.

    Attributes:
        current: the newest generation, or None.
        members: {place: its launcher's record}, of those present.
        ends: {place: `id`, `code`, `why`}, see `record`.
        ready: {(id of a launcher, number of a generation)}.
        configuration: the newest version of the configuration.
    """

    current: Optional[Generation]
    members: Dict[str, Dict[str, Any]]
    ends: Dict[str, Dict[str, Any]]
    ready: Set[Tuple[str, int]] = set()
    configuration: int = 0

    def ended(self, name: str) -> Optional[Dict[str, Any]]:
        """How the process of the current generation ended for good, or None."""
        end = self.ends.get(name)
        assert self.current is not None
        return end if end and end["id"] == self.current.members.get(name) else None

    def is_ready(self, name: str) -> bool:
        """Whether the launcher of the current generation is ready to start its command."""
        assert self.current is not None
        return (self.current.members[name], self.current.number) in self.ready

    def is_there(self, name: str) -> bool:
        """Whether the launcher of the current generation is there."""
        assert self.current is not None
        about = self.members.get(name)
        return about is not None and about["id"] == self.current.members.get(name)


class Director:
    """Publishes the job's generations while its launcher leads.

    Args:
        client, election, root: of the job.
        shape: its `Shape`.
        deadline: seconds for which a required process may be lost.
        linger: seconds that the others have once the chief has ended well.
        clock: a function that returns seconds.
        hear: called, in another thread, when there is news: then call `step`.
    """

    def __init__(self, client, election, root, shape, deadline, linger, clock, hear):
        self._client, self._election, self._root = client, election, root
        self._shape, self._deadline, self._linger = shape, deadline, linger
        self._clock, self._hear = clock, hear
        self._since: Dict[str, float] = {}
        self._sight: Optional[Sight] = None
        self._took = 0.0  # seconds for the last look
        self._news = threading.Event()
        client.listen(self._tell)

    def step(self):
        """Decides once, and publishes the decision; call it at least every few seconds.

        Raises:
            Deposed, BadVersion, NodeExists, Unavailable: call it again.
        """
        if self._election.epoch is None:
            self._sight = None
            self._since.clear()
            return
        if self._sight is None or self._news.is_set():
            time.sleep(min(GATHER, self._took))  # several arrivals are one piece of news
            self._news.clear()
            self._sight, begun = None, self._clock()
            self._sight = self._look()
            self._took = self._clock() - begun
        following = decide(self._shape, self._sight, self._waited, self._deadline, self._linger)
        if following is not None:
            self._sight = None
            generations.publish(self._election, self._root, following)

    def _look(self):
        return Sight(
            generations.read(self._client, self._root),
            membership.members(self._client, self._root, self._tell),
            record.read_ends(self._client, self._root, self._tell),
            record.read_ready(self._client, self._root, self._tell),
            configurations.latest(self._client, self._root),
        )

    def _tell(self):
        self._news.set()
        self._hear()

    def _waited(self, what, is_so):
        """For how many seconds something has been so; 0 if it is not."""
        if not is_so:
            self._since.pop(what, None)
            return 0.0
        return self._clock() - self._since.setdefault(what, self._clock())


def decide(shape, sight, waited, deadline, linger) -> Optional[Generation]:
    """The generation to publish, or None where nothing is to change.

    Args:
        shape: the job's `Shape`.
        sight: a `Sight`.
        waited: function of a name and a truth: for how many seconds it has been true.
        deadline, linger: seconds.
    """
    current = sight.current
    if current is None or not any(map(sight.is_there, current.members)):
        return _begun(shape, sight, waited)
    if record.outcome_of(current) is not None:
        return None
    end = _end(shape, sight, waited, deadline, linger)
    if end is not None:
        return current._replace(content=dict(current.content, outcome=end))
    if not record.is_over(current) and sight.ended(shape.chief_place):
        return current._replace(content=dict(current.content, over=linger))
    # A restarted parameter server has lost its variables: only a new generation, which
    # restores the checkpoint, is consistent again.
    replaced = [name for name in shape.places if role_of(name) == PS and _is_replaced(sight, name)]
    if replaced:
        forbidden = [name for name in replaced if not sight.members[name]["restarts"]]
        if not forbidden or not record.is_started(current):
            return _next(shape, sight, current.content["configuration"])
        end = _failure(
            "{} was restarted and has lost its state, and its launcher does not allow that "
            "(--restarts)".format(spoken(forbidden[0]))
        )
        return current._replace(content=dict(current.content, outcome=end))
    # The chief's launcher may come back with other files; a generation never mixes two versions.
    files = _files(shape, sight)
    if files and digest_of(files) != digest_of(current.content["files"]):
        return _next(shape, sight, sight.configuration)
    return _with_newcomers(shape, sight) or _started(shape, sight, waited, deadline)


def digest_of(files: Optional[Dict[str, Any]]) -> Optional[str]:
    """The digest of the files handed out; None for nothing."""
    return files["digest"] if files else None


def _files(shape, sight):
    """The files that the chief's launcher hands out, if it is there."""
    return sight.members.get(shape.chief_place, {}).get("files")


def _is_replaced(sight, name):
    return name in sight.members and not sight.is_there(name)


def _begun(shape, sight, waited):
    """The first generation, or the first of the next run, when it is time."""
    ready = all(name in sight.members for name in shape.required)
    late = waited("ready", ready) < LATE and any(n not in sight.members for n in shape.places)
    return None if late or not ready else _next(shape, sight, sight.configuration)


def _next(shape, sight, configuration):
    addresses = {name: about["address"] for name, about in sight.members.items()}
    servers = [about for name, about in sight.members.items() if role_of(name) == PS]
    fixed = {} if servers and all(about["moving"] for about in servers) else addresses
    files = _files(shape, sight)
    before = sight.current or Generation(0, {}, {})
    return before._replace(
        number=before.number + 1,
        members=_ids(sight),
        content=record.content(shape, addresses, fixed, files, configuration),
    )


def _ids(sight):
    return {name: about["id"] for name, about in sight.members.items()}


def _with_newcomers(shape, sight):
    current = sight.current
    members = dict(current.members, **_ids(sight))
    if members == current.members:
        return None
    addresses = dict(current.content["addresses"])
    addresses.update((name, about["address"]) for name, about in sight.members.items())
    files = _files(shape, sight) or current.content["files"]
    content = dict(current.content, addresses=addresses, files=files)
    return current._replace(members=members, content=content)


def _started(shape, sight, waited, deadline):
    """The generation whose commands start, once all are ready or it is time."""
    current = sight.current
    if record.is_started(current):
        return None
    awaited = [
        name
        for name in current.members
        if not sight.is_ready(name)
        and not sight.ended(name)
        and (name in sight.members or name in shape.required)
    ]
    late = waited("start {}".format(current.number), True) > deadline + LATE
    if awaited and not late:
        return None
    content = dict(current.content, started=sorted(map(spoken, awaited)))
    required = [spoken(name) for name in awaited if name in shape.required]
    if required:
        why = "{} had not what the command needs within {:.0f} s".format(
            ", ".join(required), deadline
        )
        content["outcome"] = _failure(why)
    return current._replace(content=content)


def _failure(why):
    return {"code": codes.JOB_FAILED, "why": why, "hung": []}


def _end(shape, sight, waited, deadline, linger):
    lost = {}
    for name in sight.current.members:
        is_lost = name not in sight.members and not sight.ended(name)
        lost[name] = waited("lost " + name, is_lost)
    for name in shape.required:
        end = sight.ended(name)
        if end and end["code"]:
            return _failure("{} failed: {}".format(spoken(name), end["why"]))
        if lost.get(name, 0.0) > deadline:
            return _failure(
                "{} was lost, and nobody took its place within {:.0f} s".format(
                    spoken(name), deadline
                )
            )
    if not sight.ended(shape.chief_place):
        return None
    others = [name for name in sight.current.members if role_of(name) != PS]
    hung = [name for name in others if not sight.ended(name) and lost[name] <= LOST]
    if not hung:
        return {"code": codes.DONE, "why": "the job has ended", "hung": []}
    # The others end after the chief; `linger` is their time for that.
    if waited("over", record.is_over(sight.current)) <= linger:
        return None
    why = "the job has ended without {}, which had not ended {:.0f} s after the chief (--linger)"
    names = list(map(spoken, sorted(hung)))
    return {"code": codes.DONE, "why": why.format(", ".join(names), linger), "hung": names}
