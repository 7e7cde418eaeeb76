"""Small faults in the core of the wrapper, and whether the nearest tests find each.

    python -m tests.mutations    # all; --only ledger: those of a file; --list: what there is

It changes a copy of the checkout, one place at a time, and runs the named tests there, under the
Python that runs it. It ends with 1 if a fault survives. What no test could find, since nothing
differs, is not listed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
COPIED = ("semisync", "graph_rewrite", "migrate", "parity", "tests", "setup.cfg", "pyproject.toml")
SECONDS = 900  # for the tests of one fault; a fault that has them hang is found, too


class Mutation(NamedTuple):
    """In a file, `before`, there once, becomes `after`; `tests` are arguments of pytest."""

    file: str
    before: str
    after: str
    tests: str


def of(file, tests, *changes):
    return [Mutation(file, before, after, tests) for before, after in changes]


LEDGER = "tests/wrap/test_ledger.py tests/wrap/test_ledger_model.py"
STALE = "tests/wrap/test_stale.py"
ONE = "tests/wrap/test_one_process.py"

MUTATIONS = [
    *of(
        "semisync/chief/ledger.py",
        LEDGER,
        ("due = 2 * max(", "due = max("),
        ("max(self.batches_per_step, len(self.members))", "self.batches_per_step"),
        (" - undrawn - len(self.pending)\n", " - undrawn\n"),
        ("return min(lacking, 1)", "return lacking"),
        ("lacking += max(0, lacking - held)", "lacking += 0"),
        ("            del self._holds[holder]", "            pass"),
        ("self.lose(self._holds.pop(member, None))", "self._holds.pop(member, None)"),
        ("            self._begin(member, message.ticket)\n", ""),
        ("session < newest or member in self._replaced", "False"),
        ("session < newest or member in self._replaced", "session < newest"),
        ("            self._give_back(message.drawn)\n", ""),
        ("            self._repeats.add(member)", "            pass"),
        ("        self._repeats.discard(member)\n", ""),
        ("        self._came[message.member] = message.ticket\n", ""),
        ("            self._replace_predecessor(member)", "            pass"),
        ('if "/task:" not in place:', 'if "/job:" in place:'),
        ("self.dead.appendleft((0.0, message.ticket))", "pass"),
        (
            "self.dead.append((self._now() + self.patience, ticket))",
            "self.dead.append((0.0, ticket))",
        ),
        ("unnamed[: max(0, len(unnamed) - undrawn)]", "unnamed[undrawn:]"),
        ("self._unannounced.get(ticket, now)", "now"),
        ("else len(self.pending)\n        weighed", "else self.batches_per_step\n        weighed"),
        ("if c.token <= clock else clock", "if c.token <= clock else 0"),
        ("0.0 if c.withheld else w", "w"),
        ("if not entry.commit.withheld:", "if entry.commit.ticket:"),
        ("self.settled.append((entry.commit.ticket, int(fate), entry.staleness))", "pass"),
        ("        self._owed += len(weighed)\n", ""),
        ("if paced and not self.paced:", "if paced:"),
        (
            " - len(self.outstanding) - len(self.pending)\n        self.paced",
            "\n        self.paced",
        ),
        ("range(self._next - count, self._next)", "range(self._next - count + 1, self._next + 1)"),
        (
            'self._end(ticket, "returned")\n            self._owed += 1',
            'self._end(ticket, "returned")',
        ),
        ('self._end(ticket, "lost", member=member)', 'self.fates["lost"] += 1'),
        (
            "self.broken, self.broken_of = self.broken + 1, message.member",
            "self.broken_of = message.member",
        ),
        (
            "withheld, self.broken = message.kind == WITHHELD, 0",
            "withheld = message.kind == WITHHELD",
        ),
        ("int(Fate.NONFINITE), -1))\n            self._owed += 1", "int(Fate.NONFINITE), -1))"),
    ),
    *of(
        "semisync/pacing.py",
        "tests/wrap/test_mitigation.py",
        ("return step < self.first", "return step <= self.first"),
        ("step >= self.since", "step > self.since"),
        ("int(self.most * batches_per_step + 1e-9)", "int(self.most * batches_per_step)"),
        ("paced.ahead(batches_per_step) if isinstance", "0 if isinstance"),
    ),
    *of(
        "semisync/staleness.py",
        "tests/wrap/test_staleness.py tests/wrap/test_stale.py",
        ("staleness <= float(self.bound)", "staleness < float(self.bound)"),
        (".maximum(staleness, 1.0)", ".maximum(staleness, 2.0)"),
        ("zip(PROBES, weights) if weight > 0", "zip(PROBES, weights) if weight >= 0"),
    ),
    *of(
        "semisync/transport/job_state.py",
        STALE,
        ("tf.where(known, row[1:], pending)", "row[1:]"),
        ("                _cleared(self._fates),\n", ""),
    ),
    *of(
        "semisync/transport/payload.py",
        "tests/wrap/test_aggregate.py tests/wrap/test_sparse_mean.py tests/wrap/test_staleness.py",
        ("return [tensors[0] * tf.cast(weight, tensors[0].dtype)]", "return tensors"),
        (
            "weighed[::2] = [values * tf.cast(weight, values.dtype) for values in tensors[::2]]",
            "pass",
        ),
        ("return [tensors[0] * weight] + tensors[1:]", "return tensors"),
        ("            values = _divided(values, batches)", "            pass"),
        ("values = values / tf.cast(touches, values.dtype)", "values = values / 1"),
    ),
    *of(
        "semisync/transport/sparse_sum.py",
        "tests/wrap/test_sparse_sum.py",
        ("updates=tf.gather(values, again)", "updates=tf.zeros_like(tf.gather(values, again))"),
        (
            "tf.cumsum(tf.cast(present, tf.int32), exclusive=True)",
            "tf.cumsum(tf.cast(present, tf.int32))",
        ),
    ),
    *of(
        "semisync/worker/withholding.py",
        "tests/wrap/test_nonfinite.py tests/wrap/test_stale.py",
        ("tf.where(tf.reduce_all(tf.stack(checked)), kind, broken)", "kind"),
        ("tf.less_equal(weights_of(", "tf.less(weights_of("),
        ("late = tf.greater(time, state.due)", "late = tf.less(time, state.due)"),
    ),
    *of(
        "semisync/aggregate/batch_norm.py",
        "tests/rewrite/test_moving_statistics.py",
        ("tf.pow(1 - rate, counted)", "1 - rate"),
        (" * tf.cast(counts, batches.dtype)", ""),
        ("variances + tf.math.squared_difference(*around)", "variances"),
        ("variance *= _correction(layout, total / tf.maximum(total - 1, 1))", "pass"),
        ("tf.expand_dims(tf.cast(weights, batches.dtype), 1) * ", ""),
    ),
    *of(
        "semisync/wrapped/siblings.py",
        ONE,
        ("limited and any(other.limited for other in known)", "False"),
        ('name if count == 1 else "{}_{}".format(name, count)', "name"),
    ),
    *of(
        "semisync/chief/operations.py",
        "tests/wrap/test_one_process.py tests/wrap/test_every_optimizer.py",
        ("with tf.control_dependencies(applied):", "with tf.control_dependencies([]):"),
    ),
    *of(
        "semisync/worker/watchdog.py",
        "tests/wrap/test_watchdog.py",
        ("min(now - looked, 2 * self._interval)", "now - looked"),
    ),
    *of(
        "graph_rewrite/training/hyperparameters.py",
        "tests/rewrite/test_hyperparameters.py",
        ('_RATES = ("lr", "alpha")', '_RATES = ("lr",)'),
        ("node.name not in made_of and not", "not"),
    ),
]


def main():
    """Reads the arguments, and makes each fault in turn."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="those of files with these words in their path")
    parser.add_argument("--list", action="store_true", help="print them and end")
    args = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if args.only in mutation.file]
    survived = 0
    with tempfile.TemporaryDirectory() as copy:
        for name in COPIED:
            put = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            put(str(ROOT / name), os.path.join(copy, name))
        for number, mutation in enumerate(chosen, 1):
            told = "{}: {!r} -> {!r}".format(mutation.file, mutation.before, mutation.after)
            began = time.monotonic()
            end = "" if args.list else "found" if found(mutation, copy) else "SURVIVED"
            survived += end == "SURVIVED"
            seconds = time.monotonic() - began
            print(
                "{}/{} {} {:.0f} s {}".format(number, len(chosen), end, seconds, told), flush=True
            )
    print("{} of {} survived".format(survived, len(chosen)))
    return int(survived > 0)


def found(mutation, copy):
    """Whether a test fails in the copy while it has the fault."""
    path = pathlib.Path(copy) / mutation.file
    source = path.read_text()
    if source.count(mutation.before) != 1:
        raise SystemExit("{}: {!r} is not there once".format(mutation.file, mutation.before))
    path.write_text(source.replace(mutation.before, mutation.after))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            command + mutation.tests.split(),
            cwd=copy,
            env=dict(os.environ, PYTHONPATH=copy, PYTHONDONTWRITEBYTECODE="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(source)
    if done.returncode not in (0, 1):  # 1: tests failed
        raise SystemExit(done.stdout.decode()[-3000:])
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
