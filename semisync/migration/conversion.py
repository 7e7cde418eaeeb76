"""The converted model of a migration, and its parts."""

import hashlib
import os
import shutil
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

import numpy as np

from semisync.common.errors import BadInput, Findings, UsageError
from semisync.common.tensor_names import node_of, of_edge
from semisync.migration import scores
from semisync.migration.settings import Settings


class Prepared(NamedTuple):
    """A conversion before any value is read.

    Attributes:
        plan: of the values; None for a frozen graph.
        found: the graph as it is converted, a `migrate.graph.find.MetaGraph`.
        outputs: {name: edge} of the scores.
        written: model.py, a `migrate.model.load.Written`.
    """

    plan: Any
    found: Any
    outputs: Dict[str, Any]
    written: Any


def prepare(settings: Settings, checkpoint: Any) -> Prepared:
    """Reads the graph of an open checkpoint, and writes the source of its model.

    Raises:
        BadInput, UsageError: the graph or the options cannot be converted.
    """
    import migrate
    from migrate.graph.find import frozen_file
    from migrate.model.load import read_meta_graph, write_source
    from migrate.model.outputs import find_outputs

    frozen = frozen_file(checkpoint) is not None
    plan = None if frozen else migrate.plan(checkpoint, settings.meta, **settings.plan)
    found = read_meta_graph(checkpoint, settings.meta, settings.inputs, settings.assets)
    outputs = find_outputs(found.graph, settings.output)
    if len(outputs) > 1:
        raise UsageError(
            "{} gives several outputs; name the one that scores with --output: {}".format(
                found.graph.path, ", ".join(outputs)
            )
        )
    return Prepared(plan, found, outputs, write_source(found, checkpoint, outputs))


def convert(
    settings: Settings,
    resume: bool,
    progress: Callable[[int, int], None],
    prepared: Optional[Prepared] = None,
) -> Dict[str, Any]:
    """Writes the values and model.py; returns a record of the conversion.

    Args:
        prepared: the result of `prepare`, if it was called before.
        resume: continue the same conversion if it was interrupted.
        progress: called with the bytes done and the total.

    Raises:
        BadInput, UsageError: the graph or the options cannot be converted.
    """
    from migrate.open import open_model
    from migrate.targets.work_directory import partial_path

    if prepared is None:
        with open_model(settings.checkpoint) as checkpoint:
            prepared = prepare(settings, checkpoint)
    plan, found, outputs, written = prepared
    # `Parts.convert` has refused to replace a model.py that was edited.
    shutil.rmtree(settings.converted, ignore_errors=True)
    if not resume:
        shutil.rmtree(partial_path(settings.converted), ignore_errors=True)
    return {
        **_values(_write(settings, plan, written, resume, progress), written),
        "outputs": list(outputs),
        "logit": _is_logit(found.graph, next(iter(outputs.values()))),
        "training": _training(found.graph),
        "off": written.off,
        "source": source_hash(settings),
    }


def _write(
    settings: Settings,
    plan: Any,
    written: Any,
    resume: bool,
    progress: Callable[[int, int], None],
) -> Any:
    """Writes the folder; returns its manifest or, for a frozen graph without a plan, the like."""
    import migrate
    from migrate.manifest.manifest import Manifest
    from migrate.model.load import write_model
    from migrate.targets.work_directory import work_directory

    if plan is None:
        with work_directory(settings.converted, 0, resume) as directory:
            write_model(written, directory)
        note = "the graph is frozen: the module scores, but it has no parameters to train"
        return Manifest(settings.checkpoint, "none", "", notes=[note])
    # Not verified here: `Parts.values` reads both sides again.
    return migrate.convert(
        plan, settings.converted, progress=progress, resume=resume, verify=False, model=written
    )


def _values(manifest: Any, written: Any) -> Dict[str, Any]:
    by_role: Dict[str, List[Any]] = {}
    for tensor in manifest.tensors:
        by_role.setdefault(tensor.role, []).append(tensor)
    trained = [one for one in written.parameters if one.trainable]
    return {
        "tables": [
            {
                "name": table.name,
                "rows": table.rows,
                "dim": table.dim,
                "dtype": table.dtype,
                "optimizer": table.optimizer,
            }
            for table in manifest.tables
        ],
        "dense": [
            {"name": one.source, "shape": one.shape, "dtype": one.dtype}
            for one in by_role.get("dense", [])
        ],
        "slots": {
            "tables": len(by_role.get("table slot", [])),
            "dense": len(by_role.get("dense slot", [])),
        },
        "scalars": manifest.scalars,
        "parameters": {
            "count": len(trained),
            "values": sum(int(np.prod(one.shape)) for one in trained),
            "buffers": len(written.parameters) - len(trained),
        },
        "dropped": manifest.dropped,
        "not_carried": manifest.not_carried(),
        "notes": [*manifest.notes, *written.notes],
    }


def features(settings: Settings) -> List[Dict[str, Any]]:
    """The inputs of model.py, with the column that each takes; None: a constant, or its default."""
    wanted = model_inputs(settings)
    column_of = {one.name: one.column for one in scores.module_inputs(settings, wanted).inputs}
    return [
        {
            "name": name,
            "column": column_of.get(name),
            "dtype": one.dtype,
            "shape": None if one.shape is None else list(one.shape),
            "sparse": one.sparse,
            "tensors": list(one.tensors),
            "guessed": one.guessed,
        }
        for name, one in wanted.items()
    ]


def refuse_unknown_inputs(settings: Settings, wanted: Mapping[str, Any]) -> None:
    """Raises UsageError, or Several, if --input or --sparse names what neither model.py, which
    takes `wanted`, nor the graph has."""
    from migrate.graph.metagraph import read_graph

    assert settings.meta is not None
    nodes, findings = read_graph(settings.meta).nodes, Findings()
    for _, name, _ in settings.named:
        node = node_of(name.split(",")[0])
        if name not in wanted and node not in nodes and node + "/values" not in nodes:
            findings.note(
                UsageError(
                    "there is no input {!r}; model.py takes {}".format(name, ", ".join(wanted))
                )
            )
    findings.end()


def _is_logit(graph: Any, output: Any) -> bool:
    """Whether a loss of the graph takes the output for a logit."""
    from migrate.graph.interface import find_interface

    tensor = of_edge(output)
    found = find_interface(graph).outputs
    return any(one.tensor == tensor and one.what == "logits" for one in found)


def _training(graph: Any) -> Dict[str, Any]:
    """The optimizers that train the variables, or why there are none."""
    from migrate.model.training.recipe import read_recipe

    try:
        recipe = read_recipe(graph)
    except BadInput as error:
        return {"optimizers": [], "reason": str(error)}
    found: Dict[str, Dict[str, Any]] = {}
    for update in recipe.updates.values():
        known = {k: v for k, v in sorted(update.hyperparameters.items()) if v is not None}
        rule = found.setdefault(
            update.optimizer.name + repr(known),
            {"name": update.optimizer.name, "settings": known, "variables": 0},
        )
        rule["variables"] += 1
    return {"optimizers": list(found.values()), "reason": None}


def model_inputs(settings: Settings) -> Mapping[str, Any]:
    """INPUTS of the model.py that is there; raises BadInput where its code fails."""
    from migrate.runtime.source import read_source
    from migrate.scoring import torch_code

    with torch_code.explained(settings.converted + "/model.py"):
        return dict(read_source(settings.converted).INPUTS)


def edited(settings: Settings, written: Any) -> bool:
    """Whether model.py differs from the one that a conversion has `written`."""
    return source_hash(settings) not in (None, written.get("source", source_hash(settings)))


def source_hash(settings: Settings) -> Optional[str]:
    """SHA-256 of model.py as it is; None where there is none."""
    try:
        with open(os.path.join(settings.converted, "model.py"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return None
