"""The places of a job: how many there are of which kind, and which it cannot do without."""

from typing import List, NamedTuple

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
