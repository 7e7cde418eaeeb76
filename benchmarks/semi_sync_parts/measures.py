"""From a `conductor.Record` to figures.

Rates are counted with soft edges: an event in the first quarter of the window counts from 0 at its
start to 1 at the quarter's end, and likewise at the other end. Workers that wait for each other
finish their batches in bursts, and a hard edge would take a burst whole or not at all: with five
bursts in a window an error of up to a fifth.
"""

import collections

from .cases import STALENESS_BOUND

EDGE = 0.25  # share of the window

MEGABYTE = 1e6


def figures(record, case):
    """A dict of one mode's figures in one repeat.

    batches_per_second      local batches finished by all workers
    cpu_per_batch           user and system time of all processes of the job together, ms
    ps_cpu_per_batch        of it, the PS
    chief_cpu_per_batch     of it, the chief's process, which trains batches as well
    workers_cpu_per_batch   of it, the other workers
    ps_memory_mb            largest resident size of the PS together, up to the window's end, 1e6 B
    ps_memory_growth_mb     the same, less what they had when the mode began
    startup_seconds         from `begin`, before the graph is built, to the first global step
    first_update_seconds    from the start of the M-th local batch (of the first, if every batch is
                            an update) to the first global step
    staleness_mean, staleness_max, staleness_beyond_bound
                            see `staleness`
    others_processors       how many CPUs other processes kept busy
    """
    start, stop = record.start, record.stop
    batches = sorted((b for result in record.results for b in result["batches"]), key=_finished)
    inside = [batch for batch in batches if start < _finished(batch) <= stop]
    pace = rate([(_finished(batch), 1) for batch in batches], start, stop)
    pairs = [((a.time + b.time) / 2, a, b) for a, b in zip(record.samples, record.samples[1:])]
    ps, chief, workers = (
        rate([(at, getattr(b, part) - getattr(a, part)) for at, a, b in pairs], start, stop)
        for part in ("ps", "chief", "workers")
    )
    others = rate([(at, b.others - a.others) for at, a, b in pairs], start, stop)
    peak = max(sample.rss for sample in record.samples)
    per_step = 1 if record.mode == "async" else case.batches_per_step
    begun = sorted(began for began, _, _, _ in batches)
    updated = min(finished for _, finished, _, step in batches if step >= 1)
    return dict(
        staleness(record, inside),
        batches_per_second=pace,
        cpu_per_batch=_per_batch(ps + chief + workers, pace),
        ps_cpu_per_batch=_per_batch(ps, pace),
        chief_cpu_per_batch=_per_batch(chief, pace),
        workers_cpu_per_batch=_per_batch(workers, pace),
        ps_memory_mb=peak / MEGABYTE,
        ps_memory_growth_mb=(peak - record.samples[0].rss) / MEGABYTE,
        startup_seconds=updated - record.begin,
        first_update_seconds=updated - begun[per_step - 1],
        others_processors=others,
    )


def _per_batch(processors, pace):
    """Milliseconds of processor time per batch."""
    return 1000 * processors / pace if pace else None


def _finished(batch):
    return batch[1]


def rate(events, start, stop):
    """Amount per second of `events`, (time, amount) each, in a window with soft edges."""
    edge = EDGE * (stop - start)

    def weight(time):
        return min(1.0, max(0.0, min(time - start, stop - time) / edge))

    # An even rate weighs as much as the window less one edge: half of each is lost at either end.
    return sum(amount * weight(time) for time, amount in events) / (stop - start - edge)


def staleness(record, inside):
    """Mean, maximum, and share beyond the bound, in steps of the mode.

    semi-sync and sync: every batch of the training, in global steps, from the chief's ledger.
    async: the batches of the window, by how many updates of others fell between the end of the
    worker's previous batch, when semisync would draw its token, and the end of this one; the bound
    does not apply. native-sync: 0 by construction, because late gradients are dropped.
    """
    counted = record.results[0].get("staleness")
    if counted is not None:
        counts = collections.Counter({int(steps): count for steps, count in counted.items()})
    elif record.mode == "native-sync":
        counts = collections.Counter({0: 1})
    else:
        counts = collections.Counter(max(0, after - before - 1) for _, _, before, after in inside)
    total = sum(counts.values())
    beyond = sum(count for steps, count in counts.items() if steps > STALENESS_BOUND)
    bounded = record.mode == "semi-sync"
    return {
        "staleness_mean": sum(s * c for s, c in counts.items()) / total if total else None,
        "staleness_max": max(counts) if counts else None,
        "staleness_beyond_bound": beyond / total if bounded and total else None,
    }
