"""The audit log: the chief's record of every ticket, and its check.

One JSON object per line:

    {"event": "begin", "step": 0, "first": T}                a chief begins; tickets from T on
    {"event": "issued", "tickets": [...]}
    {"event": "step", "step": 7, "batches": [{"member", "ticket", "token", "withheld", "waited",
                                              "staleness", "weight"}, ...]}
    {"event": "dropped", "ticket", "staleness", "weight", ...}      stale, its slot given back
    {"event": "lost", "ticket", "member"}
    {"event": "nonfinite", "ticket", "member"}
    {"event": "repeated", "ticket", "member"}                its batch had come under another ticket
    {"event": "returned", "ticket"}                          not used
    {"event": "end"}                                         every ticket is settled

Tickets that are out when a chief is killed end with it: their batches are never applied, since the
next chief begins with new tickets and from the last checkpoint. A line that such a chief did not
finish is not an event.
"""

import collections
import json
from typing import Counter, Set

from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.fate import of_weight


class AuditLog:
    """Appends events to a file and closes it each time; a path of None keeps no log.

    Args:
        path: of the file, or None.

    Examples:
        >>> audit.AuditLog("chief.jsonl").write([{"event": "begin", "step": 0, "first": 0}])
        >>> audit.read("chief.jsonl")
        [{'event': 'begin', 'step': 0, 'first': 0}]
    """

    def __init__(self, path):
        self._path = path
        if path is not None and _torn(path):
            self._append("\n")

    def write(self, events):
        """Appends events.

        Args:
            events: a list of dicts.
        """
        if self._path is not None and events:
            self._append("".join(json.dumps(event) + "\n" for event in events))

    def _append(self, text):
        with open(self._path, "a") as log:
            log.write(text)


def _torn(path):
    """True when the last line of a file lacks its newline."""
    try:
        with open(path, "rb") as log:
            if log.seek(0, 2) == 0:
                return False
            log.seek(-1, 2)
            return log.read() != b"\n"
    except FileNotFoundError:
        return False


def read(path):
    """The events of an audit log, a list of dicts, without lines that a killed chief left torn.

    Args:
        path: of the audit log.

    Returns:
        A list of dicts.

    Raises:
        BadInput: a line is not JSON, and no chief that was killed left it.

    Examples:
        >>> audit.read("audit.jsonl")[0]
        {'event': 'begin', 'step': 0, 'first': 0}
    """
    with open(path) as log:
        lines = log.read().split("\n")
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events += [json_text.loads(line)] if line else []
        except ValueError as error:
            # A torn line is the last one, or stands before the "begin" of the next chief.
            following = lines[number : number + 1]
            if following not in ([], [""]) and '"begin"' not in following[0]:
                raise BadInput("{}, line {}: not JSON".format(path, number)) from error
    return events


def steps(path):
    """The "step" events of an audit log.

    Args:
        path: of the audit log.

    Returns:
        A list of dicts.

    Raises:
        BadInput: a line is not JSON.

    Examples:
        >>> [batch["staleness"] for batch in audit.steps("audit.jsonl")[0]["batches"]]
        [0, 0]
    """
    return [event for event in read(path) if event["event"] == "step"]


def check(path):
    """Checks that every ticket ends exactly once.

    Args:
        path: of the audit log.

    Returns:
        A Counter of tickets by their end: admitted, decayed, stale, lost, nonfinite, repeated,
        returned, and "ended with the chief" for those that were out when a chief was killed.

    Raises:
        BadInput: a ticket was settled twice, or never issued, or is still out at an "end".

    Examples:
        >>> audit.check("audit.jsonl")["admitted"]
        8
    """
    counts: Counter[str] = collections.Counter()
    out: Set[int] = set()
    for event in read(path):
        kind = event["event"]
        if kind in ("begin", "end"):
            if kind == "end" and out:
                raise BadInput("{}: {} tickets are still out at the end".format(path, len(out)))
            counts["ended with the chief"] += len(out)
            out = set()
        elif kind == "issued":
            out.update(event["tickets"])
        else:
            for batch in event.get("batches", [event]):
                if batch["ticket"] not in out:
                    raise BadInput("{}: ticket {} is not out".format(path, batch["ticket"]))
                out.remove(batch["ticket"])
                counts[_fate(kind, batch)] += 1
    counts["ended with the chief"] += len(out)
    return counts


def _fate(kind, batch):
    if kind in ("lost", "nonfinite", "repeated", "returned"):
        return kind
    return of_weight(batch["weight"]).name.lower()
