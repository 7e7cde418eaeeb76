"""The places of a job: how many there are of which kind, and which it cannot do without."""

from typing import List, NamedTuple, Optional

from semisync.common.errors import UsageError

PS, WORKER, CHIEF, TORCH = "ps", "worker", "chief", "torch"
CANDIDATES = 5


class Shape(NamedTuple):
    """A job of TensorFlow has parameter servers and workers, one of torch has nodes.

    Attributes:
      ps, workers: their numbers.
      chief: True where the chief is a job of its own, as an Estimator wants it; else worker 0 is.
      nodes: of a torch job; 0 for TensorFlow.
    """

    ps: int = 0
    workers: int = 0
    chief: bool = False
    nodes: int = 0

    def check(self) -> None:
        """UsageError unless it is the shape of a job."""
        if self.nodes:
            if self.nodes < 0 or self.ps or self.workers or self.chief:
                raise UsageError("a torch job has --nodes, 1 or more, and neither ps nor workers")
        elif self.ps < 1 or self.workers < (0 if self.chief else 1):
            raise UsageError(
                "a job has at least one parameter server (--ps) and worker (--workers)"
            )

    @property
    def options(self) -> str:
        """The options that give it."""
        if self.nodes:
            return "--nodes {}".format(self.nodes)
        chief = " --chief" if self.chief else ""
        return "--ps {} --workers {}{}".format(self.ps, self.workers, chief)

    def how_many(self, role: str) -> int:
        """How many places a role has."""
        counts = {PS: self.ps, WORKER: self.workers, CHIEF: int(self.chief), TORCH: self.nodes}
        return counts[role]

    @property
    def places(self) -> List[str]:
        """All places, the indispensable first."""
        roles = (TORCH,) if self.nodes else (PS, CHIEF, WORKER)
        return [place(role, index) for role in roles for index in range(self.how_many(role))]

    @property
    def chief_place(self) -> Optional[str]:
        """The place of the chief; None in a torch job."""
        if self.nodes:
            return None
        return place(CHIEF if self.chief else WORKER, 0)

    @property
    def required(self) -> List[str]:
        """The places that the job cannot do without."""
        if self.nodes:
            return self.places
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
