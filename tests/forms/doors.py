"""What each door answers to a form that TensorFlow has trained.

An answer is "yes", "no: " and the sentence of the refusal, "wrong: " and what differs from
TensorFlow, or "" where the form has nothing that the door is about.
"""

import contextlib
import pathlib

import numpy as np

import migrate
from graph_rewrite import find_batch_norms, semi_synchronize
from graph_rewrite.metagraph.files import read
from migrate.model.load import read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps
from semisync.common.errors import SemisyncError
from semisync.common.logs import suppress_tensorflow_log
from tests.back.same import assert_same
from tests.drawn.job import Job
from tests.model.features import loaded, outputs_of

DOORS = ("batch norm", "rewrite", "convert", "score", "train", "back")
CLOSE = {"rtol": 2e-5, "atol": 1e-6}


class Form:
    """A form's files, and what the doors say of them.

    Args:
        form: the `tests.forms.form.Form`.
        folder: of its job.
        out: an empty folder.
    """

    def __init__(self, form, folder, out):
        self._form, self._job, self._out = form, Job(folder), pathlib.Path(out)
        self._prefix = self._job.prefix

    def answers(self):
        """{door: answer}."""
        asked = (
            self._batch_norm,
            self._rewrite,
            self._convert,
            self._score,
            self._train,
            self._back,
        )
        found = {door: _answer(ask) for door, ask in zip(DOORS, asked)}
        return {door: text.replace(self._prefix, "model.ckpt") for door, text in found.items()}

    def _batch_norm(self):
        with suppress_tensorflow_log():
            layers = find_batch_norms(read(self._prefix + ".meta"))
        said = [one.left_alone or one.finding for one in layers]
        for sentence in filter(None, said):
            return "no: " + sentence
        if self._form.kind == "BatchNorm":
            return "yes" if layers else "no: none is found"
        return "yes" if layers else ""

    def _rewrite(self):
        with suppress_tensorflow_log():
            _, report = semi_synchronize(read(self._prefix + ".meta"), 2, ps=2)
        return "no: " + report.warnings[0] if report.warnings else "yes"

    def _convert(self):
        with migrate.open_checkpoint(self._prefix) as checkpoint:
            plan = migrate.plan(checkpoint)
            model = None
            with contextlib.suppress(SemisyncError):  # as `_score` says
                model = _source(checkpoint)
        migrate.convert(plan, self._out / "out", model=model)
        return "no: " + plan.notes[0] if plan.notes else "yes"

    def _score(self):
        with migrate.open_checkpoint(self._prefix) as checkpoint:
            notes = _source(checkpoint).notes
        written = (self._out / "out").exists()  # or `_convert` says why not
        module = (
            loaded(self._out / "out")
            if written
            else migrate.load_model(self._prefix, output="scores")
        ).train(self._form.trains)
        (scores,) = outputs_of(module, self._job.rows)
        if notes and not np.allclose(scores, self._job.scores, **CLOSE):
            return "no: " + notes[0]
        np.testing.assert_allclose(scores, self._job.scores, **CLOSE)
        return "yes"

    def _train(self):
        steps = self._job.steps
        feeds = {
            name: value for name, value in steps[0].batch.items() if not getattr(value, "ndim", 1)
        }
        training = build_training(self._prefix, feeds=feeds)
        report = compare_steps(training, steps)
        assert report.exceeded is None, report.exceeded
        assert not report.neutral, report.neutral
        left = training.optimizer.left_out
        back = migrate.write_checkpoint(training, self._out / "trained", original=self._prefix)
        with migrate.open_checkpoint(back.prefix) as checkpoint:
            assert set(checkpoint) == set(self._job.values)
            for name, value in self._job.values.items():
                if name not in left:
                    np.testing.assert_allclose(checkpoint.read(name), value, err_msg=name, **CLOSE)
        return (
            "no: in TensorFlow alone a step changes {}".format(", ".join(left)) if left else "yes"
        )

    def _back(self):
        if not (self._out / "out").exists():
            return ""
        migrate.write_checkpoint(self._out / "out", self._out / "same", original=self._prefix)
        assert_same(self._prefix, self._out / "same")
        return "yes"


def _source(checkpoint):
    found = read_meta_graph(checkpoint, None)
    return write_source(found, checkpoint, find_outputs(found.graph, ["scores"]))


def _answer(ask):
    try:
        return ask()
    except SemisyncError as error:
        return "no: {}".format(error)
    except AssertionError as error:
        return "wrong: {}".format(error)
