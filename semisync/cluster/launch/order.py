"""The order of a launcher: which command to run, at which place, within which limits."""

from typing import List, NamedTuple, Optional, Sequence

from semisync.cluster.record import Shape


class Order(NamedTuple):
    """The options of one launcher.

    Attributes:
        shape: a `Shape`.
        role: "ps", "worker" or "chief".
        number: of the place; None: any.
        command: a list of words.
        restarts: how often the command may be started again when it fails.
        deadline: seconds to wait for the processes that the job needs.
        grace: seconds that the command has to end after SIGTERM.
        linger: seconds that the other workers have to end once the chief has ended well.
        host: name of this machine for the others.
        ship, config: of the chief's launcher: paths that it hands out, and the configuration's.
        moving: of a parameter server: True where workers may come back on other machines.
    """

    shape: Shape
    role: str
    number: Optional[int]
    command: List[str]
    restarts: int
    deadline: float
    grace: float
    linger: float
    host: str
    moving: bool = False
    ship: Sequence[str] = ()
    config: Optional[str] = None
