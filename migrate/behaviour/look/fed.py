"""The feeds of both sides: columns, and constants that --feed must give.

Errors of the graph itself, which no option corrects, are left to the comparison that meets them: a
graph without a training op can still be scored.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, List, Mapping, Sequence

from migrate.behaviour import subject as subjects
from migrate.behaviour.serving import as_it_serves
from migrate.behaviour.setting import Setting
from migrate.behaviour.subject import Subject
from migrate.behaviour.trained.loss import write_loss
from migrate.graph.metagraph import Edge
from migrate.model.load import Written
from migrate.model.training.build import refuse_unfed_rates
from migrate.model.training.recipe import read_recipe
from migrate.scoring.model import Input
from migrate.scoring.module_inputs import ModuleInputs, input_called
from semisync.common.errors import BadInput, Findings, UsageError
from semisync.common.tensor_names import in_session, short


def fed_to_score(
    subject: Subject,
    written: Written,
    wanted: Mapping[str, Any],
    outputs: Iterable[Edge],
    setting: Setting,
    findings: Findings,
) -> List[Input]:
    """The columns that model.py takes.

    Args:
        written: the source of the graph's model.py, unedited.
        wanted: INPUTS of model.py.
        outputs: the tensors that are compared.
    """
    edges = list(outputs)
    found = _columns(subject, wanted, setting, written.off, findings)
    with contextlib.suppress(BadInput), findings.noting(UsageError):
        feeds = as_it_serves(subject, written, setting, wanted, edges).feeds
        subjects.refuse_unfed(subject, edges, _names(wanted, feeds))
    return found


def fed_to_train(
    subject: Subject, model: Mapping[str, Any], setting: Setting, findings: Findings
) -> List[Input]:
    """The columns that a training step takes besides model.py's own: labels and weights; none for a
    graph without a training op.

    Args:
        model: INPUTS of model.py.
    """
    with contextlib.suppress(BadInput), findings.noting(UsageError):
        recipe = read_recipe(subject.found.graph)
        loss = recipe.loss(subject.found.graph)
        written, drawn = write_loss(subject, loss)
        wanted = {name: one for name, one in written.wanted.items() if name not in drawn}
        wanted.update(model)
        more = {name: one for name, one in wanted.items() if name not in model}
        found = _columns(subject, more, setting, {}, findings)
        feeds = {
            **subjects.session_feeds(setting, wanted, subjects.told_feeds(setting, wanted)),
            **subjects.no_dropout(subject, written.emitter),
            **subjects.training_feeds(written.emitter, setting, training=True),
        }
        with findings.noting(UsageError):
            fed = _names(wanted, [*feeds, *drawn])
            subjects.refuse_unfed(subject, [loss], fed)
        with findings.noting(UsageError):
            given = {short(name): value for name, value in setting.feeds.items()}
            nodes = written.by_node
            refuse_unfed_rates(subject.found, subject.checkpoint, recipe, nodes, given)
        return found
    return []


def _columns(
    subject: Subject,
    wanted: Mapping[str, Any],
    setting: Setting,
    off: Mapping[str, float],
    findings: Findings,
) -> List[Input]:
    """The columns of the inputs, one by one, so that each is checked."""
    found: List[Input] = []
    for name, one in wanted.items():
        own = {name: one}
        # ModuleInputs refuses names that its inputs do not have.
        named = [told for told in setting.named if input_called(told[1], own) is not None]
        constants = subjects.told_feeds(setting, own)
        with findings.noting():
            found += ModuleInputs(subject.raw.path, own, named, constants, off).inputs
    return found


def _names(wanted: Mapping[str, Any], feeds: Iterable[str]) -> Sequence[str]:
    """The names of all tensors that are fed, in a session's form."""
    tensors = (tensor for one in wanted.values() for tensor in one.tensors)
    return [in_session(name) for name in (*feeds, *tensors)]
