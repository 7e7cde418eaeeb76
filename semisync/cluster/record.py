"""A job's places, and its launchers' shared records besides their membership.

ROOT/generation      by the leader: the members, and in its content
    shape            the job's `Shape`
    addresses        {place: HOST:PORT}, of all that ever came
    fixed            {place: HOST:PORT} which the parameter servers know for ever
    files            the files that the chief's launcher hands out, or null, see `launch.shipment`
    configuration    the newest version of the configuration when the run began: of an earlier run
    started          null until the commands start, then those that were not ready, a list
    over             null until the chief has ended well, then the seconds that the others have to
                     end: no command is started any more
    outcome          null while the job runs; then `code`, `why` and `hung`, the processes that had
                     to be stopped
ROOT/ready/ID-N-S    by the launcher ID: it has what its command needs in generation N; in session S
ROOT/ended/PLACE     by a launcher whose command has ended for good: `id`, `code`, `why`
ROOT/training        by the chief's: the chief's latest report of the training, see
                     `semisync.cluster.status.document`
"""

import contextlib
import json
from typing import Any, Dict, List, NamedTuple, Optional

from semisync.cluster.zookeeper.client import NodeExists
from semisync.cluster.zookeeper.generation import Generation
from semisync.cluster.zookeeper.values import foreign, read_object
from semisync.common.errors import UsageError

PS, WORKER, CHIEF = "ps", "worker", "chief"
CANDIDATES = 5


class Shape(NamedTuple):
    """How many parameter servers and workers a job has.

    Attributes:
        ps, workers: their numbers.
        chief: True where the chief is a job of its own, as an Estimator wants it; else worker 0 is.
    """

    ps: int = 0
    workers: int = 0
    chief: bool = False

    def check(self) -> None:
        """Raises UsageError unless it is the shape of a job."""
        if self.ps < 1 or self.workers < (0 if self.chief else 1):
            raise UsageError(
                "a job has at least one parameter server (--ps) and worker (--workers)"
            )

    @property
    def options(self) -> str:
        """The options that give it."""
        chief = " --chief" if self.chief else ""
        return "--ps {} --workers {}{}".format(self.ps, self.workers, chief)

    def how_many(self, role: str) -> int:
        """How many places a role has."""
        return {PS: self.ps, WORKER: self.workers, CHIEF: int(self.chief)}[role]

    @property
    def places(self) -> List[str]:
        """All places, the indispensable first."""
        roles = (PS, CHIEF, WORKER)
        return [place(role, index) for role in roles for index in range(self.how_many(role))]

    @property
    def chief_place(self) -> str:
        """The place of the chief."""
        return place(CHIEF if self.chief else WORKER, 0)

    @property
    def required(self) -> List[str]:
        """The places that the job cannot do without."""
        return [name for name in self.places if role_of(name) == PS or name == self.chief_place]

    @property
    def candidates(self) -> List[str]:
        """The places whose launchers may lead.

        The first few suffice: a job that has lost all of these has lost what it cannot do without,
        or consists of them.
        """
        return self.places[:CANDIDATES]


def place(role: str, index: int) -> str:
    """A place's name."""
    return "{}-{}".format(role, index)


def role_of(name: str) -> str:
    return name.partition("-")[0]


def index_of(name: str) -> int:
    return int(name.partition("-")[2])


def spoken(name: str) -> str:
    """A place's name for people, `worker 2`; the only chief has no number."""
    return CHIEF if role_of(name) == CHIEF else name.replace("-", " ")


def content(
    shape: Shape,
    addresses: Dict[str, str],
    fixed: Dict[str, str],
    files: Optional[Dict[str, Any]] = None,
    configuration: int = 0,
) -> Dict[str, Any]:
    """The content of a generation that begins so."""
    return {
        "shape": shape._asdict(),
        "addresses": addresses,
        "fixed": fixed,
        "files": files,
        "configuration": configuration,
        "started": None,
        "over": None,
        "outcome": None,
    }


def is_over(generation: Generation) -> bool:
    """Whether the chief has ended well."""
    return generation.content["over"] is not None


def outcome_of(generation: Generation):
    """`code`, `why` and `hung` of the job's end, or None while it runs."""
    return generation.content["outcome"]


def is_started(generation: Generation) -> bool:
    """Whether the commands of a generation may start."""
    return generation.content["started"] is not None


def write_ready(client, root, id, number):
    """Records, until the session ends, that a launcher is ready for a generation."""
    # By the session, too: the node of an earlier one may still be there, and vanishes with it.
    path = "{}/ready/{}-{}-{:x}".format(root, id, number, client.session or 0)
    with contextlib.suppress(NodeExists):
        client.create(path, b"", ephemeral=True)


def read_ready(client, root, watch=None):
    """{(launcher, generation)} of the launchers that are ready."""
    above = "{}/ready".format(root)
    client.ensure(above)
    found = set()
    for name in client.children(above, watch):
        id, number, *_ = name.split("-") + [""]  # a session's number may be negative, -N--S
        if not number.isdecimal():
            raise foreign("{}/{}".format(above, name))
        found.add((id, int(number)))
    return found


def write_end(client, root, name, id, code, why):
    """Records how a command ended for good."""
    path = "{}/ended/{}".format(root, name)
    value = json.dumps({"id": id, "code": code, "why": why}).encode()
    try:
        client.create(path, value)
    except NodeExists:  # of an earlier run
        client.put(path, value, -1)


def read_ends(client, root, watch=None):
    """{place: the record of its launcher}, of this run and earlier ones."""
    above = "{}/ended".format(root)
    client.ensure(above)
    paths = ["{}/{}".format(above, name) for name in client.children(above, watch)]
    found = client.get_many(paths)
    kinds = {"id": str, "code": int, "why": str}
    return {
        path.rpartition("/")[2]: read_object(path, value, **kinds)
        for path, (value, _) in found.items()
    }


def write_training(client, root, training):
    """Records the chief's latest report of the training, a dict."""
    path = root + "/training"
    client.ensure(path)
    client.put(path, json.dumps(training).encode("utf-8"), -1)
