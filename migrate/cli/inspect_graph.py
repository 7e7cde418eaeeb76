"""`semisync inspect PATH --graph`: what a graph can be fed and what it likely gives."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from migrate.graph.attributes import Shape
from migrate.graph.find import graph_file
from migrate.graph.interface import Interface, find_interface
from migrate.graph.interface.feeds import Feed
from migrate.graph.lowering import lower
from migrate.graph.metagraph import Graph, read_graph
from migrate.model.coverage import unknown_ops
from migrate.model.outputs import find_outputs
from semisync.common.errors import SemisyncError

SCHEMA = "semisync.graph/1"
_INPUTS = ("input", "dtype", "shape", "kind", "read by")
_OUTPUTS = ("likely output", "dtype", "shape", "kind", "why")
_NAMED = 3  # names in a cell


def run(path: str, meta: Optional[str], as_json: bool) -> int:
    """Prints the inputs and outputs of the graph; returns 0."""
    file = meta or graph_file(path)
    graph = read_graph(file)
    interface = find_interface(graph)
    model = converts(graph)
    if as_json:
        print(json.dumps({**described(file, interface), "model": model}, indent=1))
    else:
        print("\n".join([as_text(file, interface), "", _of_model(model)]))
    return 0


def converts(graph: Graph) -> Dict[str, Any]:
    """Whether `convert --model` can write the model: its outputs, and the ops that are not known
    with the names of their nodes; or the reason why neither can be told."""
    try:
        whole = lower(graph)
        outputs = find_outputs(whole, None)
        unknown = unknown_ops(whole, list(outputs.values()))
    except SemisyncError as error:
        return {"outputs": [], "unknown_ops": {}, "reason": str(error)}
    names = {op: [node.name for node in nodes] for op, nodes in unknown.items()}
    return {"outputs": list(outputs), "unknown_ops": names, "reason": None}


def _of_model(model: Dict[str, Any]) -> str:
    if model["reason"] is not None:
        return f"semisync convert --model: {model['reason']}"
    outputs = ", ".join(model["outputs"])
    if not model["unknown_ops"]:
        return f"semisync convert --model writes the model that gives {outputs}: all ops are known."
    listed = [f"  {op}: {_names(tuple(nodes))}" for op, nodes in model["unknown_ops"].items()]
    return "\n".join([f"semisync convert --model lacks ops for {outputs}:", *listed])


def described(path: str, interface: Interface) -> Dict[str, Any]:
    """The listing as plain data; of an unknown rank the shape is None, as unknown sizes are."""
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


def as_text(path: str, interface: Interface) -> str:
    """Two tables, and the call of `semisync score` that they come to."""
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
        rows.append([out.tensor, out.dtype or "?", _sizes(out.shape), out.what, out.why])
    none = ["No tensor looks like a score; give score's --output the name of one."]
    lines += ["", *(aligned(rows) if len(rows) > 1 else none)]
    if os.path.basename(path) == "saved_model.pb":
        call = f"semisync score DATA --saved-model {os.path.dirname(path)} --out scores.parquet"
        lines += ["", "To score by its signature, whose inputs take the columns of their names:"]
        lines.append(f"  {call}")
    elif interface.outputs:
        lines += ["", "To score with the first output:", f"  {_call(path, interface)}"]
    return "\n".join(lines)


def _call(path: str, interface: Interface) -> str:
    """`semisync score` with what the first output needs."""
    output = interface.outputs[0]
    prefix, suffix = os.path.splitext(path)
    parts = [f"semisync score DATA --checkpoint {prefix}"]
    if suffix != ".meta":
        parts = [f"semisync score DATA --checkpoint PREFIX --meta {path}"]
    for feed in interface.needed(output.tensor):
        if feed.features:
            parts += [
                f"--examples {feed.name}",
                *(f"--input {feature.name}" for feature in feed.features),
            ]
        elif feed.shape == () or feed.dtype == "bool" or feed.shape is None and not feed.read_by:
            parts.append(f"--feed {feed.name}=VALUE")
        elif feed.kind != "default":
            option = "--sparse" if feed.kind == "sparse" else "--input"
            parts.append(f"{option} {feed.feature or 'COLUMN'}={feed.name}")
    parts.append(f"--output {output.tensor}")
    if output.shape and (output.shape[-1] or 0) > 1 and len(output.shape) > 1:
        parts.append("--column N")
    elif output.what == "logits":
        parts.append("--sigmoid")
    return " ".join([*parts, "--out scores.parquet"])


def _called(feed: Feed) -> str:
    """Its name, and the feature that it is."""
    if feed.feature is None or feed.name in (feed.feature, f"{feed.feature}:0"):
        return feed.name
    return f"{feed.name} = {feed.feature}" + (" (a guess)" if feed.guessed else "")


def _readers(feed: Feed) -> str:
    if feed.labels_of:
        return f"the loss {_names(feed.labels_of)}, as labels"
    return _names(feed.read_by or feed.into) or "nothing"


def _names(names: "tuple[str, ...]") -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


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
