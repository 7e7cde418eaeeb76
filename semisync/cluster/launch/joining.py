"""Taking a place: a free one, the lowest if nobody else wants it, or the requested one.

A place is free when nobody holds it and its command has not ended well in this run. A place whose
launcher was lost is free as soon as ZooKeeper has noticed, so it is waited for. Launchers that were
given different numbers of processes refuse to work together.
"""

import contextlib
import random
import time

from semisync.cluster import record
from semisync.cluster.launch.director import Sight, digest_of
from semisync.cluster.launch.port import HeldPort, with_port
from semisync.cluster.record import PS, Shape, place, role_of, spoken
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper import membership
from semisync.cluster.zookeeper.client import Unavailable
from semisync.cluster.zookeeper.membership import Membership, Taken
from semisync.common.errors import UsageError

LOOK_EVERY = 0.5  # seconds


class NoPlace(UsageError):
    """Every place of the role is taken, or its process has ended well."""


class Joined:
    """A place that is held.

    Attributes:
        name: of the place.
        port: a `HeldPort`.
        membership: a `Membership`.
    """

    def __init__(self, name, port, member):
        self.name, self.port, self.membership = name, port, member


def join(client, root, order, about, stopped):
    """Takes a place.

    Args:
        client, root: of the job.
        order: the launcher's `Order`.
        about: this launcher's record for the others, without `address`.
        stopped: a threading.Event that ends the waiting.

    Returns:
        A `Joined`; None when it was stopped.

    Raises:
        UsageError: the others were given other numbers.
        BadInput: the job's nodes are another user's.
        NoPlace: no place was free in time.
    """
    late = time.monotonic() + order.deadline
    numbers = range(order.shape.how_many(order.role))
    names = [place(order.role, n) for n in numbers if order.number in (None, n)]
    while True:
        why = "ZooKeeper is away"
        with contextlib.suppress(Unavailable):
            client.own(root)
            here = membership.names(client, root)
            # One stands for all: each was compared when it came.
            _same_shape(order.shape, membership.about(client, root, here[:1]))
            if about["files"]:
                _check_holder(membership.about(client, root, names))
            current, unfit = _run(client, root, order, names, about["files"])
            for name in _by_chance([name for name in names if name not in {*here, *unfit}]):
                joined = _taken(client, root, name, about, order.host, current)
                if joined is not None:
                    return joined
            why = _why(names, membership.about(client, root, names))
        if time.monotonic() > late:
            raise NoPlace(why)
        if stopped.wait(LOOK_EVERY):
            return None


def _by_chance(free):
    """The lowest first; then any, so that many that come at once seldom meet."""
    return free[:1] + random.sample(free[1:], len(free[1:]))


def _same_shape(shape, members):
    for name, about in members.items():
        other = Shape(**about["shape"])
        if other != shape:
            raise UsageError(
                "this launcher was started with {}, and that of {} on {} with {}: they must be "
                "the same for all of a job".format(
                    shape.options, spoken(name), about["host"], other.options
                )
            )


def _run(client, root, order, names, files):
    """The newest generation, and the places in it that this launcher cannot take, a list.

    Those are the places whose processes have ended well, and the chief's if its launcher must hand
    out files and this one hands out none.
    """
    shape = order.shape
    sight = Sight(
        generations.read(client, root),
        membership.about(client, root, shape.required),
        record.read_ends(client, root),
    )
    if sight.current is None or not any(map(sight.is_there, shape.required)):
        return sight.current, []  # nothing has begun, or all of it is over
    ends = {name: sight.ended(name) for name in names}
    unfit = [name for name, end in ends.items() if end and end["code"] == 0]
    if not files and sight.current.content["files"]:
        unfit.append(shape.chief_place)
    if names == [shape.chief_place] and record.outcome_of(sight.current) is None:
        _check_files(sight, files)
    return sight.current, unfit


def _check_holder(members):
    """Raises UsageError if the chief's place is held by a launcher that hands out nothing."""
    for name, about in members.items():
        if not about["files"]:
            raise UsageError(
                "{} is on {} already, without --ship or --config: start this launcher first, or "
                "the other workers with --index".format(spoken(name), about["host"])
            )


def _check_files(sight, files):
    """Raises UsageError if a launcher for the chief cannot come into a job that runs."""
    if digest_of(files) == digest_of(sight.current.content["files"]):
        return
    if not files:
        raise UsageError(
            "the job runs with files that the chief's launcher hands out: start this one with the "
            "same --ship and --config"
        )
    servers = [about for name, about in sight.members.items() if role_of(name) == PS]
    if not all(about["restarts"] for about in servers):
        raise UsageError(
            "the job runs with other files, and the launchers of its parameter servers allow no "
            "restart (--restarts): give the same --ship and --config, or end the job first"
        )


def _taken(client, root, name, about, host, current):
    """The place if it could be taken, else None."""
    port = HeldPort(_earlier_port(name, host, current))
    about = dict(about, address=with_port(host, port.number))
    member = Membership(client, root, name, about)
    try:
        member.register()
    except Taken:
        port.close()
        return None
    return Joined(name, port, member)


def _earlier_port(name, host, current):
    """The port at which the others know this place already, if it was on this machine; else 0."""
    if current is None or role_of(name) == PS:
        return 0
    address = current.content["fixed"].get(name, ":0")
    earlier, _, port = address.rpartition(":")
    return int(port) if earlier.strip("[]") == host else 0


def _why(names, members):
    def state(name):
        if name in members:
            return "{} is on {}".format(spoken(name), members[name]["host"])
        return "{} has ended".format(spoken(name))

    return "there is no place for another one: {}".format(", ".join(map(state, names)))
