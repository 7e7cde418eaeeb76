"""From a checkpoint and its graph to a torch module that scores raw features."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import weakref
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Union

from graph_rewrite.graph.ops import VARIABLES
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import MetaGraph, find_meta_graph, lowered
from migrate.graph.interface.inputs import Input
from migrate.graph.interface.signatures import input_keys
from migrate.graph.metagraph import explained
from migrate.hash_tables.whole_tables import with_tables
from migrate.model.any_rows.free import Freed, free_rows
from migrate.model.constants import Constants
from migrate.model.coverage import refuse_unknown
from migrate.model.emitter import Emitter
from migrate.model.features.description import describe
from migrate.model.inputs import cut_at
from migrate.model.layers.batch_norm import batch_statistics
from migrate.model.layers.dropout import fed_shares
from migrate.model.layers.moves import read_late
from migrate.model.lookup_tables import Tables
from migrate.model.model_file import model_source
from migrate.model.named_inputs import Named, begin_at
from migrate.model.ops.values import Value
from migrate.model.outputs import Outputs, find_outputs
from migrate.model.parameters import Parameter, Parameters
from migrate.model.source.guard import checked_module
from migrate.model.source.names import Names
from migrate.open import open_model
from migrate.runtime.source import run_source
from semisync.common.errors import BadInput
from semisync.common.files import write_text
from semisync.common.sentences import some_of

_NUMBERS = itertools.count()
SOURCE, FEATURES = "model.py", "features.json"  # beside a conversion's data


def load_model(
    checkpoint: Union[Checkpoint, str, os.PathLike],
    meta: Optional[str] = None,
    output: Union[str, Sequence[str], None] = None,
    inputs: Named = None,
    assets: Sequence[str] = (),
) -> Any:
    """The model of a checkpoint as a torch.nn.Module that takes the raw features.

    The module's `forward` takes a mapping of the graph's own inputs, placeholders or features that
    a parser or an iterator delivers; `module.tensorflow_inputs` lists them. Trained variables are
    parameters, others buffers: `module.tensorflow_variables` has the TensorFlow name of each.
    `module.source` is its Python source, `module.tensorflow_features` features.json's contents,
    `module.notes` caveats of its scores, such as that a vocabulary is a guess.

    Args:
        checkpoint: an open one, or its prefix, the directory of a SavedModel, or the file of a
            frozen graph.
        meta: the MetaGraph, by default the one beside it.
        output: the name of the tensor, or of several, that the module returns; by default found in
            the graph, see `migrate.model.outputs`.
        inputs: {name: tensor} of the module's inputs, any tensors, or just their names; by default
            the graph's feeds, see `migrate.model.named_inputs`.
        assets: files from which the graph may fill lookup tables though they are not in its
            directory, see `migrate.model.vocabulary_files`.

    Returns:
        A torch.nn.Module.

    Raises:
        BadInput: the graph has an unknown op, the outputs cannot be determined, the checkpoint is
            another model's, or the graph names a file that it may not read.

    Examples:
        >>> model = migrate.load_model("model.ckpt-40000")
        >>> batch = {"city": ["Bern", "Oslo"], "item": torch.tensor([7, 8])}
        >>> model(batch).shape
        torch.Size([2, 1])
    """
    checkpoint = opened(checkpoint)
    found = read_meta_graph(checkpoint, meta, inputs, assets)
    written = write_source(found, checkpoint, find_outputs(found.graph, output))
    from migrate.runtime.serving.linear import score_by_onednn

    return score_by_onednn(build_module(written, checkpoint)).eval()


def opened(checkpoint: Union[Checkpoint, str, os.PathLike]) -> Checkpoint:
    """The checkpoint of a model, for an open one or a path."""
    return checkpoint if isinstance(checkpoint, Checkpoint) else open_model(checkpoint)


def read_meta_graph(
    checkpoint: Checkpoint,
    meta: Optional[str],
    inputs: Named = None,
    assets: Sequence[str] = (),
) -> MetaGraph:
    """The graph of a checkpoint with these inputs and files, and without function calls.

    Raises:
        BadInput: there is no graph.
    """
    found = find_meta_graph(checkpoint, meta)
    if found is None:
        raise BadInput(f"there is no graph beside {checkpoint.prefix}; name one with --meta")
    found = lowered(found, assets)
    return found._replace(graph=begin_at(found.graph, inputs))


class Written(NamedTuple):
    """A model as source.

    Attributes:
        text: of model.py.
        by_node: its parameters, by variable node.
        constants: its constants, by attribute.
        inputs: the features that it reads.
        outputs: the values of its outputs.
        emitter: the Emitter of its statements.
        features: the use of its features, see `migrate.model.features.description`.
        freed: whether its number of rows is free.
        off: the dropout rates among its inputs, with the values at which nothing is dropped.
    """

    text: str
    by_node: Dict[str, Parameter]
    constants: Constants
    inputs: List[Input]
    outputs: List[Value]
    emitter: Emitter
    features: Dict[str, Any]
    freed: Freed
    off: Dict[str, float]

    @property
    def parameters(self) -> List[Parameter]:
        """The parameters, each once: a table has as many nodes as partitions."""
        return list(dict.fromkeys(self.by_node.values()))

    @property
    def wanted(self) -> Dict[str, Any]:
        """The inputs of the module, by name (migrate.runtime.interface.Input)."""
        return run_source(self.text.encode(), SOURCE).INPUTS

    @property
    def digest(self) -> str:
        """SHA-256 of the written source and files."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def drops(self) -> str:
        """A sentence on values that the graph drops at random whenever it runs; "": it does not."""
        regions = self.emitter.regions.of
        nodes = [name for name, layer in self.emitter.layers.items() if layer.off]
        nodes = [node for node in nodes if not any(branch for _, branch in regions[node])]
        # A dropout in a branch alone, as under a placeholder that says whether the model trains, is
        # no caveat.
        if not nodes:
            return ""
        named = some_of(map(repr, nodes), most=1)
        return (
            f"the graph drops values at random whenever it runs, in {named}, so that its scores "
            "differ from run to run; model.py drops only while it trains"
        )

    @property
    def by_batch(self) -> str:
        """A sentence on statistics of each batch that no known form of BatchNorm has; "": none."""
        found = sorted(batch_statistics(self.emitter.subject, self.emitter.computed()))
        if not found:
            return ""
        return (
            "BatchNorm is of a form that is not known here: model.py takes the statistics of each "
            f"batch in {some_of(map(repr, found), most=1)}, as the graph does while it trains, so "
            "that a row's score depends on the rows beside it; give the MetaGraph of an evaluation "
            "with --meta"
        )

    @property
    def late(self) -> str:
        """A sentence on variables that the graph changes before it reads them; "": none."""
        found = read_late(self.emitter.subject)
        if not found:
            return ""
        return (
            f"the graph changes {some_of(map(repr, found), most=1)} whenever it runs, before it "
            "reads it; model.py reads what is stored; give the MetaGraph of an evaluation with "
            "--meta"
        )

    @property
    def notes(self) -> List[str]:
        """Sentences on caveats of the model's scores."""
        found = [
            self.drops,
            self.by_batch,
            self.late,
            self.freed.note,
            *self.emitter.tables.files.notes,
        ]
        return [note for note in found if note]


def write_source(found: MetaGraph, checkpoint: Checkpoint, outputs: Outputs) -> Written:
    """The source of the model.

    Raises:
        BadInput: as `load_model`.
        NotOurs: it would hold code that the emitter does not write; none of it has been run.
    """
    checkpoint = with_tables(checkpoint)
    edges = list(outputs.values())
    with explained(found.graph):
        graph = cut_at(found.graph, input_keys(found.graph))
        refuse_unknown(graph, edges, found.saved)
        freed = free_rows(graph, edges)
        written = _write(found, checkpoint, outputs, freed)
        # Only the written source shows which values are computed: layers hide some that mix rows.
        apart = freed.unless_mixed(graph, written.emitter.computed())
        return written if apart is freed else _write(found, checkpoint, outputs, apart)


def _write(found: MetaGraph, checkpoint: Checkpoint, outputs: Outputs, freed: Freed) -> Written:
    graph, edges = freed.graph, list(outputs.values())
    names = Names(_own_names() | _taken_in_files(checkpoint))
    parameters = Parameters(graph, found.saved, checkpoint, names)
    constants = Constants(names, graph.path)
    tables = Tables(graph, names, constants)
    emitter = Emitter(graph, edges, parameters, constants, tables)
    shares = fed_shares(emitter.subject, emitter.layers.values())
    emitter.inputs = {e: _scalar(one, e in shares) for e, one in emitter.inputs.items()}
    kept = list(dict.fromkeys(parameters.by_node.values()))
    origin = os.path.basename(graph.path)
    # Before the statements are rendered, which inlines the expressions that are described.
    features = describe(emitter, parameters, tables)
    frozen = not any(node.op in VARIABLES for node in graph.nodes.values())
    only = freed.size if freed.why else None
    text = model_source(
        emitter, list(outputs), kept, constants, tables.sources, origin, frozen, only
    )
    checked_module(text)
    inputs = list(emitter.inputs.values())
    values = emitter.outputs
    by_node = parameters.by_node
    off = {one.name: shares[edge] for edge, one in emitter.inputs.items() if edge in shares}
    return Written(text, by_node, constants, inputs, values, emitter, features, freed, off)


def _scalar(one: Input, known: bool) -> Input:
    """The input; one that is `known` to be a scalar has the shape () if it states none."""
    return one._replace(shape=()) if known and one.shape is None else one


def _own_names() -> Set[str]:
    """The attributes that every module has, and the methods of model.py."""
    from torch import nn

    return {*dir(nn.Module()), "numeric", "transform"}


_OF_LAYERS = {"bias", "running_mean", "running_var", "weight"}


def _taken_in_files(checkpoint: Checkpoint) -> Set[str]:
    """The name of a layer whose tensors would clash with `dense.VARIABLE` of a conversion."""
    return {"dense"} if _OF_LAYERS & set(checkpoint) else set()


def build_module(written: Written, checkpoint: Checkpoint) -> Any:
    """The module of a source, with its values."""
    from migrate.runtime.files import InMemory

    files = InMemory(written.constants.large, written.constants.assets)
    module = _module(written.text, files)
    module.source = written.text
    module.tensorflow_variables = {p.attribute: p.variable for p in written.parameters}
    module.tensorflow_nodes = written.by_node
    module.tensorflow_features = written.features
    module.notes = written.notes
    fill(module, written, checkpoint)
    return module


def write_model(written: Written, directory: str) -> str:
    """Writes model.py, its files and features.json into a conversion; returns model.py's path."""
    from migrate.runtime.files import write_files

    write_files(directory, written.constants.large, written.constants.assets)
    features = json.dumps(written.features, indent=1)
    write_text(os.path.join(directory, FEATURES), features + "\n")
    path = os.path.join(directory, SOURCE)
    write_text(path, written.text)
    return path


def fill(module: Any, written: Written, checkpoint: Checkpoint) -> None:
    """Sets every parameter, and every buffer that is a variable, to the checkpoint's value."""
    import torch

    checkpoint = with_tables(checkpoint)
    # Copied: a checkpoint may return read-only views, whose memory torch would share.
    state: Dict[str, Any] = {
        parameter.attribute: torch.from_numpy(parameter.read(checkpoint).copy())
        for parameter in written.parameters
    }
    module.load_state_dict(state)


def _module(text: str, files: Any) -> Any:
    """The module of a source. The source is in sys.modules under a name of its own while the module
    lives: torch.compile looks up the globals of the source there."""
    home = ModuleType(f"model_{next(_NUMBERS)}")
    home.__file__ = "model.py"
    exec(compile(text, "model.py", "exec"), home.__dict__)
    module = home.Model(files)
    module.tensorflow_inputs = home.INPUTS
    sys.modules[home.__name__] = home
    weakref.finalize(module, sys.modules.pop, home.__name__, None)
    return module
