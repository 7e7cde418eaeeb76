"""Faults in the core of the wrapper: what is counted, weighed, withheld, averaged."""

from tests.mutations import of

LEDGER = "tests/wrap/test_ledger.py tests/wrap/test_ledger_model.py"
STALE = "tests/wrap/test_stale.py"
ONE = "tests/wrap/test_one_process.py"

WRAPPER = [
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
