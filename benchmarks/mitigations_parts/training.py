"""One run: one mode, one optimizer, one seed; the whole curve."""

import time
from typing import Any

import numpy as np

import parity
from benchmarks.mitigations_parts import lateness, model
from benchmarks.mitigations_parts.methods import BOUND
from benchmarks.mitigations_parts.optimizers import Adagrad, Adam, AdaptiveRevision

EPOCHS = 3
LOCAL = {"assist": 256, "sparrow": 32}  # rows of a local batch
POINTS = 4  # of a curve
_VERSIONS = {True: 128, False: 16}  # that are kept, in asynchronous training and else
_RUNNING = 0.5  # weight of the newest change in the running mean of the changes


class Training:
    """Trains one run in this process.

    Args:
        rows: `data.Rows`.
        data: its name.
        split: "test" or "validation".
        optimizer: "adam" or "adagrad"; its rate falls to 0 with Adam and stays with Adagrad, as in
            `benchmarks.auc_evidence_parts.plan`.
        size: M.
        method: `methods.Method`.
        rate: the learning rate.
        seed: of the initial values, the order of the rows and the trace.
    """

    def __init__(self, rows, data, split, optimizer, size, method, rate, seed):
        self._rows, self._method, self._rate, self._seed = rows, method, rate, seed
        self._train, self._held_out = rows.splits[split]
        self._shape = model.shape_of(rows)
        self._alone = method.late == "async"
        self._size = 1 if self._alone else size
        self._batches = self._order(LOCAL[data], size)
        self._steps = len(self._batches) // self._size
        self._staleness = self._trace(size)
        self._falls = optimizer == "adam"
        count = self._shape.size
        self._optimizer: Any
        if method.revision:
            self._optimizer = AdaptiveRevision(count)
        else:
            self._optimizer = Adam(count, method.beta1) if self._falls else Adagrad(count)
        scope = slice(self._shape.tower if method.tower_only else 0, count)
        self._scope = scope
        self._weights = model.initial(self._shape, 100 * seed)
        kept = _VERSIONS[self._alone]
        self._versions = np.tile(self._weights, (kept, 1))
        self._change = np.zeros(count, np.float32)
        self._into = np.zeros((1 if self._alone else BOUND + 1, count), np.float32)
        self._counts = None

    def _order(self, local, batches_per_step):
        random = np.random.RandomState(self._seed)
        count = self._train.stop - self._train.start
        order = np.concatenate([random.permutation(count) for _ in range(EPOCHS)])
        whole = local * batches_per_step
        order = order[: len(order) // whole * whole] + self._train.start
        return order.reshape(-1, local)

    def _trace(self, batches_per_step):
        """int [steps, M]: the staleness of each batch."""
        method, steps, seed = self._method, self._steps, self._seed
        if method.late is None:
            return np.zeros((steps, self._size), np.int64)
        if self._alone:
            trace = lateness.asynchronous(steps, seed).staleness
            return np.minimum(trace[:steps], _VERSIONS[True] - 1).reshape(-1, 1)
        trace = lateness.semi_synchronous(steps, batches_per_step, seed, method.wanted)
        late = np.array(trace.staleness[:steps])
        late[: round(method.paced_first * steps)] = 0
        late[steps - round(method.paced_last * steps) :] = 0
        return late

    def run(self):
        """Trains; returns the figures: the curve, and how late the batches were on average.

        "auc" and "log_loss" are None where the training diverged, and the curve ends before that.
        """
        began, curve, losses = time.process_time(), [], []
        ends = {self._steps * point // POINTS for point in range(1, POINTS + 1)}
        for step in range(self._steps):
            losses.append(self._step(step))
            if step + 1 in ends:
                score = self._score()
                if score["auc"] is None:
                    break
                point = {"step": step + 1, "training": float(np.mean(losses))}
                curve.append(dict(score, **point))
                losses = []
        return {
            "auc": score["auc"],
            "log_loss": score["log_loss"],
            "staleness": float(np.mean(self._staleness)),
            "curve": curve,
            "seconds": time.process_time() - began,
        }

    def _score(self):
        """{"auc", "log_loss"} of the held-out rows; None each where a score is not finite."""
        logits = model.scores(self._shape, self._rows, self._held_out, self._weights)
        if not np.isfinite(logits).all():
            return {"auc": None, "log_loss": None}
        labels = self._rows.labels[self._held_out]
        loss = float(np.mean(np.logaddexp(0, logits.astype(np.float64)) - labels * logits))
        return {"auc": parity.auc(labels, logits), "log_loss": loss}

    def _step(self, step):
        """Makes one step; returns the mean log loss of its rows."""
        staleness = np.minimum(self._staleness[step], step)
        kept = len(self._versions)
        chosen = self._batches[step * self._size : (step + 1) * self._size]
        counted = np.ones(1, bool) if self._alone else staleness <= BOUND
        self._into[:] = 0
        loss = 0.0
        for late in np.unique(staleness[counted]):
            into = self._into[0 if self._alone else late]
            read = self._versions[(step - late) % kept]
            together = chosen[staleness == late]
            loss += model.gradients(self._shape, self._rows, together, read, into)
        if self._method.clip:
            self._counts = model.counts(self._rows, chosen[counted].reshape(-1))
        rate = self._rate_at(step)
        before = self._weights.copy() if self._method.look_ahead else None
        if self._method.revision:
            self._optimizer.apply_late(self._weights, self._groups(staleness), rate)
        else:
            self._optimizer.apply(self._weights, self._gradient(step, staleness), rate)
        self._publish(step, before)
        return loss / max(1, counted.sum())

    def _rate_at(self, step):
        rate = self._rate * (1 - step / self._steps if self._falls else 1.0)
        rising = self._method.warm_up * self._steps
        return rate * min(1.0, (step + 1) / rising) if rising else rate

    def _groups(self, staleness):
        """{staleness: (sum of the gradients / M, share of the batches)} of those that count."""
        return {
            late: (self._into[late] / np.float32(self._size), (staleness == late).mean())
            for late in sorted(set(staleness.tolist()))
            if late <= BOUND
        }

    def _gradient(self, step, staleness):
        """The gradient that the optimizer gets, float32 [size]."""
        if self._alone:
            return self._into[0]
        method, gradient = self._method, np.zeros(self._shape.size, np.float32)
        scope = self._scope
        for late, (part, share) in self._groups(staleness).items():
            weight = 1 / max(late, 1) if method.inverse else 1
            gradient += np.float32(weight) * part
            if late and (method.compensation or method.curvature):
                read = self._versions[(step - late) % len(self._versions)][scope]
                moved = np.float32(share) * (self._weights[scope] - read)
                if method.compensation:
                    own = part[scope] / np.float32(share)
                    gradient[scope] += np.float32(method.compensation) * own**2 * moved
                else:
                    rows = self._size * self._batches.shape[1]
                    squares = self._optimizer.mean_square()[scope]
                    gradient[scope] += np.float32(method.curvature * rows) * squares * moved
        return self._clipped(gradient) if method.clip else gradient

    def _clipped(self, gradient):
        """CowClip of the table's rows."""
        table = gradient[: self._shape.tower].reshape(-1, model.ROW)
        weights = self._weights[: self._shape.tower].reshape(-1, model.ROW)
        most = self._method.clip * self._counts * np.maximum(_norms(weights), 1e-5)
        norms = _norms(table)
        table *= np.minimum(1, most / np.maximum(norms, 1e-30))[:, None].astype(np.float32)
        return gradient

    def _publish(self, step, before):
        """Keeps what workers read from now on."""
        version = self._versions[(step + 1) % len(self._versions)]
        version[:] = self._weights
        if before is not None:
            self._change += np.float32(_RUNNING) * (self._weights - before - self._change)
            version[self._scope] += np.float32(self._method.look_ahead) * self._change[self._scope]


def _norms(rows):
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))
