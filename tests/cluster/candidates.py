"""Processes of `tests.cluster.candidate`, and what they wrote down of their terms."""

import os
import subprocess
import sys

from tests.support.require import ROOT
from tests.support.waiting import until


class Candidates:
    """Starts candidates and follows who leads.

    Args:
        hosts: of ZooKeeper, with a chroot.
        folder: a pathlib directory.
        session_timeout: seconds.
    """

    def __init__(self, hosts, folder, session_timeout):
        self._hosts, self._folder, self._session_timeout = hosts, folder, session_timeout
        self._running = {}

    def start(self):
        """Starts one more."""
        name = "candidate-{}".format(len(self._running))
        arguments = [self._hosts, name, str(self._folder / name), str(self._session_timeout)]
        self._running[name] = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.candidate", *arguments], cwd=str(ROOT)
        )
        until(lambda: self._lines(name))

    def _lines(self, name):
        path = self._folder / name
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [line.split() for line in lines]

    def _instants(self):
        """(instant, epoch, name) of every look that found a leader."""
        return [
            (float(instant), int(epoch), name)
            for name in self._running
            for epoch, instant in self._lines(name)[1:]
        ]

    def terms(self):
        """(epoch, name, first and last instant) of every term, by epoch."""
        found = {}
        for instant, epoch, name in self._instants():
            found[epoch, name] = found.get((epoch, name), (instant,))[0], instant
        return [(*key, *term) for key, term in sorted(found.items())]

    def leader(self, after=0):
        """(epoch, name) of the newest leader, once it has a greater epoch than `after`."""
        return until(lambda: [term[:2] for term in self.terms() if term[0] > after])[-1]

    def led_at(self, since, after=0):
        """The first instant from `since` on at which one led with an epoch greater than `after`."""
        return until(
            lambda: [i for i, e, _ in sorted(self._instants()) if i >= since and e > after]
        )[0]

    def longest_gap(self, since):
        """The longest time without a leader after an instant at which one led."""
        instants = sorted(instant for instant, _, _ in self._instants() if instant >= since)
        return max(later - instant for instant, later in zip(instants, instants[1:]))

    def check(self):
        """AssertionError if two led at one instant, or one epoch had two leaders."""
        terms = self.terms()
        assert len({epoch for epoch, *_ in terms}) == len(terms), terms
        for (_, _, _, end), (_, _, begin, _) in zip(terms, terms[1:]):
            assert end < begin, terms

    def signal(self, name, number):
        os.kill(self._running[name].pid, number)

    def stop(self):
        for process in self._running.values():
            process.kill()
            process.wait()
