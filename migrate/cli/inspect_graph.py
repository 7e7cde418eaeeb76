"""`semisync inspect PATH --graph`: a graph's feeds, its likely outputs, and whether
`convert --model` writes it as a model, which is tried without writing anything."""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import Any, Dict, List, Optional, Sequence

from migrate.graph.attributes import Shape
from migrate.graph.find import graph_file
from migrate.graph.interface import Interface, find_interface
from migrate.graph.interface.feeds import Feed
from migrate.graph.interface.losses import is_of_softmax
from migrate.graph.lowering import lower
from migrate.graph.metagraph import Graph, read_graph
from migrate.model.coverage import unknown_ops
from migrate.model.load import Written, read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.open import open_model
from migrate.planning.planner import plan
from semisync.answers import answer
from semisync.common.errors import BadInput, SemisyncError
from semisync.common.extras import extra
from semisync.common.sentences import some_of
from semisync.common.tensor_names import short, split
from semisync.common.terminal import quoted
from semisync.storage.files import size_of

SCHEMA = "semisync.graph/1"
_INPUTS = ("input", "dtype", "shape", "kind", "read by")
_OUTPUTS = ("likely output", "dtype", "shape", "kind", "why")
_META = ".meta"
_NAMED = 3  # names in a cell


def run(path: str, meta: Optional[str], as_json: bool, assets: Sequence[str] = ()) -> int:
    """Prints the inputs and outputs of the graph; returns 0."""
    file = meta or graph_file(path)
    graph = read_graph(file)
    interface = find_interface(graph)
    model = converts(path, meta, graph, assets)
    document = {**described(file, interface), "model": model}
    answer(as_json, document, [*as_lines(file, interface), "", *_of_model(model)])
    return 0


def converts(
    path: str, meta: Optional[str], graph: Graph, assets: Sequence[str] = ()
) -> Dict[str, Any]:
    """The result of `convert --model` on the graph at `path`, or on the one at `meta`.

    Returns:
        A dict: the call, the outputs of the model and a note on what it drops; or the reason why
        none is written, with the unknown ops and the names of their nodes.
    """
    prefix = path[: -len(_META)] if meta is None and path.endswith(_META) else path
    call = shlex.join(
        ["semisync", "convert", prefix, "converted", "--model", *_options(meta, assets)]
    )
    found: Dict[str, Any] = {
        "call": call,
        "outputs": [],
        "unknown_ops": {},
        "reason": None,
        "note": None,
    }
    try:
        with extra("torch", "to convert it"):
            found["note"] = "; ".join(_write(prefix, meta, assets).notes) or None
    except SemisyncError as error:
        found["reason"] = str(error)
    with contextlib.suppress(SemisyncError), extra("torch", ""):  # the reason is said
        whole = lower(graph)
        outputs = find_outputs(whole, None)
        unknown = unknown_ops(whole, list(outputs.values()))
        found["outputs"] = list(outputs)
        found["unknown_ops"] = {op: [node.name for node in nodes] for op, nodes in unknown.items()}
    return found


def _options(meta: Optional[str], assets: Sequence[str]) -> List[str]:
    given = [] if meta is None else ["--meta", meta]
    return given + [word for asset in assets for word in ("--asset", asset)]


def _write(prefix: str, meta: Optional[str], assets: Sequence[str]) -> Written:
    """All of `convert --model` but the files; raises the same errors."""
    with open_model(prefix) as checkpoint:
        if checkpoint:  # else it is a frozen graph, which has no variables
            plan(checkpoint, meta)
        # `convert` reads the data files, and nothing here does: one that is missing must show.
        for shard in checkpoint.shard_paths():
            if size_of(shard) is None:
                raise BadInput(f"{shard}, a data file of {checkpoint.prefix}, is missing")
        found = read_meta_graph(checkpoint, meta, assets=assets)
        return write_source(found, checkpoint, find_outputs(found.graph, None))


def _of_model(model: Dict[str, Any]) -> List[str]:
    outputs = ", ".join(model["outputs"])
    if model["reason"] is None:
        note = [f"Note: {model['note']}."] if model["note"] else []
        return [f"To convert the model, which gives {outputs}:", f"  {model['call']}", *note]
    lines = [f"semisync convert --model does not write the model: {model['reason']}"]
    if model["unknown_ops"]:
        lines.append(f"The ops before {outputs} that are not known:")
        lines += [f"  {op}: {some_of(names, _NAMED)}" for op, names in model["unknown_ops"].items()]
    return lines


def described(path: str, interface: Interface) -> Dict[str, Any]:
    """The listing as plain data; a shape of unknown rank is None, and so is an unknown size."""
    return {
        "schema": SCHEMA,
        "path": path,
        "inputs": [
            {
                **{key: value for key, value in feed._asdict().items() if key != "edges"},
                "features": [feature._asdict() for feature in feed.features],
            }
            for feed in interface.feeds
        ],
        "outputs": [output._asdict() for output in interface.outputs],
    }


def as_lines(path: str, interface: Interface) -> List[str]:
    """Two tables, and the call of `semisync score` that follows from them."""
    rows = [list(_INPUTS)]
    for feed in interface.feeds:
        cells = [_called(feed), feed.dtype or "?", _sizes(feed.shape), feed.kind, _readers(feed)]
        rows.append(cells)
        for feature in feed.features:
            kind = "sparse feature" if feature.sparse else "feature"
            shape = "any number" if feature.sparse else _sizes(feature.shape)
            rows.append([f"  {feature.name}", feature.dtype, shape, kind, ""])
    lines = aligned(rows) if len(rows) > 1 else ["Nothing can be fed into this graph."]
    rows = [list(_OUTPUTS)]
    for out in interface.outputs:
        rows.append([quoted(out.tensor), out.dtype or "?", _sizes(out.shape), out.what, out.why])
    none = ["No tensor looks like a score; give score's --output the name of one."]
    lines += ["", *(aligned(rows) if len(rows) > 1 else none)]
    if os.path.basename(path) == "saved_model.pb":
        folder = shlex.quote(os.path.dirname(path))
        call = f"semisync score DATA --saved-model {folder} --out scores.parquet"
        lines += ["", "To score by its signature, whose inputs take the columns of their names:"]
        lines.append(f"  {call}")
    elif interface.outputs:
        lines += ["", "To score with the first output:", f"  {_call(path, interface)}"]
    return lines


def _call(path: str, interface: Interface) -> str:
    """A `semisync score` command with the options that the first output needs."""
    output = interface.outputs[0]
    prefix, suffix = os.path.splitext(path)
    parts = ["--checkpoint", prefix]
    if suffix != _META:
        parts = ["--checkpoint", "PREFIX", "--meta", path]
    for feed in interface.needed(output.tensor):
        if feed.features:
            parts += ["--examples", feed.name]
            for feature in feed.features:
                parts += ["--input", feature.name]
        elif feed.shape == () or feed.dtype == "bool" or feed.shape is None and not feed.read_by:
            parts += ["--feed", f"{feed.name}=VALUE"]
        elif feed.kind != "default":
            option = "--sparse" if feed.kind == "sparse" else "--input"
            parts += [option, f"{feed.feature or 'COLUMN'}={feed.name}"]
    parts += ["--output", output.tensor]
    # Several scores a row, of which one is to be chosen.
    wide = any((size or 0) > 1 for size in (output.shape or ())[1:])
    if wide or is_of_softmax(interface.walks, split(output.tensor)):
        parts += ["--column", "N"]
    elif output.what == "logits":
        parts.append("--sigmoid")
    return shlex.join(["semisync", "score", "DATA", *parts, "--out", "scores.parquet"])


def _called(feed: Feed) -> str:
    """The feed's name, and that of its feature where it differs."""
    if feed.feature is None or short(feed.name) == feed.feature:
        return quoted(feed.name)
    return f"{quoted(feed.name)} = {feed.feature}" + (" (a guess)" if feed.guessed else "")


def _readers(feed: Feed) -> str:
    if feed.labels_of:
        return f"the loss {some_of(feed.labels_of, _NAMED)}, as labels"
    return some_of(feed.read_by or feed.into, _NAMED) or "nothing"


def _sizes(shape: Shape) -> str:
    if shape is None:
        return "unknown"
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def aligned(rows: List[List[str]]) -> List[str]:
    """Rows of a table, in columns of equal width."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
