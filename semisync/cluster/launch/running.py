"""The command in its place: started for a generation, started again within limits, stopped.

Where another process was absent when a generation began, or is a worker that may move, the command
is given an address of this launcher, which leads to that process wherever it is (`forward`).

A command learns of its job from environment variables or from words of its command line. A
TensorFlow process has TF_CONFIG. Where a script takes its cluster from the command line instead,
these words are replaced in it:

    {ps_hosts} {worker_hosts} {chief_hosts}   HOST:PORT, separated by commas
    {job_name} {task_index}                   this process
    {config}                                  the configuration's path, as in SEMISYNC_CONFIG
"""

import json
import time
from typing import Any, Callable, Optional

from semisync.cluster import record
from semisync.cluster.launch import codes
from semisync.cluster.launch.child import Child, in_words
from semisync.cluster.launch.codes import End
from semisync.cluster.launch.forward import Forwards
from semisync.cluster.launch.order import Order
from semisync.cluster.launch.output import Output
from semisync.cluster.launch.port import is_loopback
from semisync.cluster.launch.workplace import Workplace
from semisync.cluster.record import CHIEF, PS, WORKER, index_of, place, role_of, spoken
from semisync.cluster.status.report_file import ReportFile
from semisync.cluster.zookeeper.generation import Generation
from semisync.common.errors import UsageError

_CONFIG_PATH = "SEMISYNC_CONFIG"
# Seconds before a command is started again: after its first failure, and after many in a row.
FIRST_REST, LONGEST_REST = 1.0, 10.0
LONG_RUN = 60.0  # seconds after which a failure says nothing about the next start


class Running:
    """The command of a launcher.

    Args:
        order: an `Order`.
        output: an `Output`.
        told: called, in another thread, when the command has ended.
    """

    def __init__(self, order: Order, output: Output, told: Callable[[], None]) -> None:
        self._order, self._output, self._told = order, output, told
        self._child: Any = None
        self._number = 0  # of the generation for which the command was started
        self._starts = 0  # in this generation
        self._rest = FIRST_REST  # before the next start, if the command fails
        self._is_over = False  # and this launcher has said so
        self._started_at = self._start_at = 0.0
        self._generation: Any = None
        self._forwards = Forwards(self.address_of)
        self._has_begun_together = False  # and this launcher has said without whom
        self.workplace = Workplace(output.say, told)
        self.report = ReportFile()

    def follow(self, name: str, generation: Generation) -> Optional[End]:
        """Starts, restarts or replaces the command.

        Args:
            name: of the place.
            generation: the newest, which has this launcher in it.

        Returns:
            The command's end, once it has ended for good.

        Raises:
            UsageError: the others cannot reach this process where it is.
        """
        self._generation = generation
        if self._number != generation.number:
            _check_addresses(name, generation)
            self._begin_anew(generation.number)
        if not (self.has_files(generation) and self.workplace.is_ready):
            why = self.workplace.failure
            return End(codes.COMMAND_FAILED, why) if why else None
        if not record.is_started(generation):
            return None
        self._say_without_whom(generation.content["started"])
        if record.is_over(generation) and not self._is_over:
            self._is_over = True
            self._say_how_long(name, generation.content["over"])
        if self._child is None and _is_needless(name, generation):
            self._output.say("the training is over: the command is not started")
            return End(codes.DONE, "the chief has ended")
        if self._child is None and time.monotonic() >= self._start_at:
            self._start(name)
        return self._look(name)

    def has_files(self, generation: Generation) -> bool:
        """Whether the files of a generation are there; else they are fetched from now on."""
        about = generation.content["files"]
        return self.workplace.has_files(generation.number, about, self._order.deadline)

    def _say_without_whom(self, missing):
        if missing and not self._has_begun_together:
            self._output.say("the job starts without {}: not ready".format(", ".join(missing)))
        self._has_begun_together = True

    def stop(self) -> None:
        """Ends the command and takes no more connections for others."""
        if self._child is not None:
            self._child.stop(self._order.grace)
        self._forwards.close()
        self.report.close()
        self.workplace.close()

    def _begin_anew(self, number):
        if self._child is not None:
            self._output.say("the job starts over")
            self._child.stop(self._order.grace)
            self._child = None
        self._number, self._starts, self._rest, self._start_at = number, 0, FIRST_REST, 0.0
        self._is_over = self._has_begun_together = False

    def _say_how_long(self, name, seconds):
        if role_of(name) != PS and self._child is not None and self._child.code is None:
            said = "the chief has ended: the command has {:.0f} s to end (--linger)"
            self._output.say(said.format(seconds))

    def _start(self, name):
        order, book, config = self._order, self._book(name), self.workplace.config
        self._child = Child(
            words(order.command, order.shape, book, name, config),
            dict(variables(order.shape, book, name, config), **self._reporting(name)),
            self._output.pass_on,
            self._told,
            self.workplace.folder,
        )
        self._starts += 1
        self._started_at = time.monotonic()

    def _reporting(self, name):
        """The chief's extra environment variables; see `report_file`."""
        return {} if role_of(name) == PS else self.report.variables()

    def _book(self, own):
        """The address of every place; of one that was absent, an address here that leads to it."""
        known, moving = self._generation.content["addresses"], self._order.moving
        for name in self._order.shape.places:
            moves = moving and role_of(own) == PS and role_of(name) != PS
            if moves or name not in known:
                self._forwards.address(name)
        forwards = {name: self._forwards.address(name) for name in self._forwards.names}
        return dict(known, **forwards)

    def address_of(self, name):
        """The present address of a process, HOST:PORT, or None."""
        return self._generation.content["addresses"].get(name)

    def _look(self, name):
        """The end of a command that has ended for good; else has it started again."""
        child = self._child
        if child is None or child.code is None:
            return None
        if child.code == 0:
            if role_of(name) == PS:
                return None  # it has waited for the workers by itself, as its launcher still does
            return End(codes.DONE, "the command has ended")
        words = in_words(child.code)
        if _is_needless(name, self._generation):
            self._output.say(
                "the command ended with {}, after the end of the training".format(words)
            )
            return End(codes.DONE, "the chief has ended")
        if self._starts > self._order.restarts:
            times = "" if self._starts == 1 else " after {} starts".format(self._starts)
            why = "the command on {} ended with {}{}".format(self._order.host, words, times)
            return End(codes.COMMAND_FAILED, why)
        if time.monotonic() - self._started_at > LONG_RUN:
            self._rest = FIRST_REST
        rest = min(LONGEST_REST, self._rest)
        self._rest = 2 * rest
        self._output.say(
            "the command ended with {}; start {} of at most {} in {:.0f} s".format(
                words, self._starts + 1, self._order.restarts + 1, rest
            )
        )
        self._child, self._start_at = None, time.monotonic() + rest
        return None


def _is_needless(name, generation):
    """Whether a command that does not run is not to be started: the training is over."""
    return role_of(name) != PS and record.is_over(generation)


def _check_addresses(name, generation):
    """Raises UsageError if others could not reach one of the addresses."""
    fixed, now = generation.content["fixed"].get(name), generation.content["addresses"]
    if fixed not in (None, now[name]):
        raise UsageError(
            "{} was at {} when the parameter servers started, and they cannot learn another "
            "address: start its launcher on that machine, or next time those of the parameter "
            "servers with --workers-may-move".format(spoken(name), fixed)
        )
    local = sorted(place for place, address in now.items() if is_loopback(address))
    if 0 < len(local) < len(now):
        raise UsageError(
            "{} is at {}, which other machines cannot reach: give its launcher --host".format(
                spoken(local[0]), now[local[0]]
            )
        )


def variables(shape, book, name, config=""):
    """Environment variables of a process.

    Args:
        shape: the job's `Shape`.
        book: {place: HOST:PORT}, of all places.
        name: the process's place.
        config: the path of its configuration; "": it has none.
    """
    cluster = {role: _hosts(shape, book, role) for role in (CHIEF, PS, WORKER)}
    told = {
        "cluster": {role: hosts for role, hosts in cluster.items() if hosts},
        "task": {"type": role_of(name), "index": index_of(name)},
    }
    more = {_CONFIG_PATH: config} if config else {}
    # Python would keep output to a pipe in a buffer, and lose it when the process is killed.
    return {"TF_CONFIG": json.dumps(told), "PYTHONUNBUFFERED": "1", **more}


def words(command, shape, book, name, config=""):
    """The command line of a process; see `variables`."""
    told = {
        "{%s_hosts}" % role: ",".join(_hosts(shape, book, role)) for role in (PS, WORKER, CHIEF)
    }
    told.update({"{job_name}": role_of(name), "{task_index}": str(index_of(name))})
    if config:
        told["{config}"] = config
    return [_replaced(word, told) for word in command]


def _replaced(word, told):
    for token, value in told.items():
        word = word.replace(token, value)
    return word


def _hosts(shape, book, role):
    return [book[place(role, index)] for index in range(shape.how_many(role))]
