"""How long a worker's batches take: distributions, stragglers, preemption, load by day, traces.

A batch has a pause, in which its worker waits for nothing of the job (input, another machine), and
a demand, in which it computes. Both are drawn per batch:

    pause  = Times.pause  x f
    demand = Times.demand x f,   f = log-normal(spread) x slow batch x slow worker x load of the day

A log-normal factor has the mean 1. With preemption, a worker is away for `away` seconds every
`every` seconds on average (exponential), and the batch that it was in starts over, once: `every`
must be as long as ten batches. A trace replaces the draws, but not preemption and the load of the
day: worker w repeats the batches of trace w (modulo the number of traces), see `read_traces`.
"""

import csv
import math
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np

from semisync.common.errors import BadInput, UsageError
from semisync.simulate.limits import whole, within

_BLOCK = 256  # batches drawn at a time
# The meaning of each number of `Times`, the least and the most. With a spread of 3, one batch in
# a hundred takes a thousand times as long as the median; with more no simulation meets the mean.
_LIMITS = (
    ("pause", "a batch's pause in seconds", 0, 10**9),
    ("demand", "a batch's demand in seconds", 0, 10**9),
    ("spread", "the spread of the log-normal factor", 0, 3),
    ("slow_share", "the share of slow batches", 0, 1),
    ("slow_factor", "the factor of slow batches", 0.001, 10**6),
    ("slow_worker_factor", "the factor of slow workers", 0.001, 10**6),
    ("every", "the time between two preemptions in seconds", 0.001, 10**9),
    ("away", "the time that a preempted worker is away in seconds", 0, 10**9),
    ("day", "the length of a day in seconds", 0.001, 10**9),
    ("day_factor", "the factor of the day's load", 0.001, 10**6),
)
_BETWEEN_PREEMPTIONS = 10  # batches, on average


class Times(NamedTuple):
    """Seconds per batch, see the module.

    Attributes:
        pause: the mean, before the factors.
        demand: the mean, before the factors.
        spread: standard deviation of the logarithm of the log-normal factor; 0: none.
        slow_share: which share of the batches takes `slow_factor` times as long.
        slow_factor: see `slow_share`.
        slow_workers: how many of the workers, the last ones, are always slower.
        slow_worker_factor: how many times as long their batches take.
        every: seconds between preemptions, on average; None: there are none.
        away: seconds that a preempted worker is away.
        day: seconds of a day, over which the load rises to `day_factor` and falls to 1 as a cosine;
            None: the load is constant.
        day_factor: see `day`.
        traces: [(pauses, demands)] of arrays in seconds, instead of all of these but preemption and
            the load of the day.

    Examples:
        >>> from semisync.simulate import Times
        >>> slow = Times(demand=0.1, slow_share=0.1, slow_factor=5)  # every tenth batch takes 0.5 s
    """

    pause: float = 0.0
    demand: float = 0.1
    spread: float = 0.0
    slow_share: float = 0.0
    slow_factor: float = 1.0
    slow_workers: int = 0
    slow_worker_factor: float = 1.0
    every: Optional[float] = None
    away: float = 0.0
    day: Optional[float] = None
    day_factor: float = 1.0
    traces: Sequence[Tuple[np.ndarray, np.ndarray]] = ()


def check_times(times, workers):
    """Raises UsageError unless these are times that so many workers may have."""
    for name, meaning, least, most in _LIMITS:
        if getattr(times, name) is not None:
            within(meaning, getattr(times, name), least, most)
    whole("the number of slow workers", times.slow_workers, 0, workers)
    traces = [float(np.mean(pauses) + np.mean(demands)) for pauses, demands in times.traces]
    longest = max(traces, default=times.pause + times.demand)
    if not min(traces, default=longest) > 0:
        raise UsageError("a worker's batches take time: give them a pause or a demand")
    if times.every is not None and times.every < _BETWEEN_PREEMPTIONS * longest:
        raise UsageError(
            "a worker that is preempted every {:g} s hardly ends a batch of {:g} s: preemptions "
            "come after {} batches or more, on average".format(
                times.every, longest, _BETWEEN_PREEMPTIONS
            )
        )


class WorkerTimes:
    """The batches of one worker, one after another.

    Args:
        times: the `Times`.
        worker, workers: this one's number, and how many there are.
        seed: with the worker's number it fixes every draw.

    Attributes:
        phase: at which part of a batch the worker starts, from 0 to 1.
    """

    def __init__(self, times, worker, workers, seed):
        self._times = times
        self._random = np.random.RandomState([seed, worker])
        self.phase = self._random.random_sample()
        self._steady = 1.0
        if worker >= workers - times.slow_workers:
            self._steady = times.slow_worker_factor
        self._batches = iter(())
        self._trace = times.traces[worker % len(times.traces)] if times.traces else None
        self._preempted_at = self._until_preempted(0.0)

    def next(self, now):
        """(pause, demand) of the batch that begins at `now`."""
        batch = next(self._batches, None)
        if batch is None:
            self._batches = self._draw()
            batch = next(self._batches)
        pause, demand = batch
        if self._times.day is not None:
            angle = 2 * math.pi * now / self._times.day
            load = 1 + (self._times.day_factor - 1) * (1 - math.cos(angle)) / 2
            pause, demand = pause * load, demand * load
        if now + pause + demand > self._preempted_at:
            pause += max(0.0, self._preempted_at - now) + self._times.away
            self._preempted_at = self._until_preempted(now + pause)
        return pause, demand

    def _until_preempted(self, now):
        if self._times.every is None:
            return float("inf")
        return now + self._random.exponential(self._times.every)

    def _draw(self):
        if self._trace is not None:
            return zip(*(column.tolist() for column in self._trace))
        times, random = self._times, self._random
        factors = np.full(_BLOCK, float(self._steady))
        if times.spread:
            factors *= random.lognormal(-(times.spread**2) / 2, times.spread, _BLOCK)  # mean 1
        factors[random.random_sample(_BLOCK) < times.slow_share] *= times.slow_factor
        return zip((times.pause * factors).tolist(), (times.demand * factors).tolist())


def read_traces(paths):
    """The traces of files as `semisync.TraceHook` writes them, one a worker.

    A last line without an end, as a worker that was killed leaves it, is not counted.

    Args:
        paths: of the files, a list.

    Returns:
        [(pauses, demands)], float64 arrays of seconds.

    Raises:
        BadInput: a file is not a trace.

    Examples:
        >>> from semisync.simulate import read_traces
        >>> [(pauses, demands)] = read_traces(["worker-0.csv"])
        >>> pauses
        array([0.01, 0.02])
    """
    return [_read(path) for path in paths]


def _read(path):
    pauses, demands = [], []
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            whole_lines = (line for line in file if line.endswith(("\n", "\r")))
            for number, row in enumerate(csv.DictReader(whole_lines), 2):
                try:
                    seconds = [float(row[name]) for name in ("pause", "run")]
                except (KeyError, TypeError, ValueError):
                    seconds = [math.nan]
                if not all(0 <= one < math.inf for one in seconds):
                    raise BadInput(
                        "{}, line {}: expected the columns pause and run, in seconds of 0 or more; "
                        "semisync.TraceHook writes such files".format(path, number)
                    )
                pauses.append(seconds[0])
                demands.append(seconds[1])
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("{} cannot be read: {}".format(path, error)) from error
    if not pauses:
        raise BadInput("{} has no batches".format(path))
    return np.array(pauses), np.array(demands)
