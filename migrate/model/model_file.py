"""The text of model.py."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from migrate.graph.interface.inputs import Input
from migrate.model.constants import Constants
from migrate.model.emitter import Emitter
from migrate.model.ops.values import torch_type
from migrate.model.parameters import Parameter
from migrate.model.source.layout import laid_out, masked
from migrate.model.source.parts import GIVEN, Parts, split
from migrate.model.source.statements import Block, Return, put, render

_HEAD = '''"""{title}

Converted from {origin}. `forward` takes the raw features,
a mapping of what INPUTS lists, and returns what OUTPUTS lists: a tensor, or a tuple of several.
{frozen}"""

{imports}
from migrate import runtime

# The raw features: type, shape (None: any size) and what they are in TensorFlow{guessed}.{rows}
INPUTS = {inputs}

# What the results are in TensorFlow.
OUTPUTS = {outputs}

# What tells TensorFlow that the model trains; here `train()` and `eval()` do.
TRAINING = {flags}

# What the module's tensors are in TensorFlow, with the order of their axes where it is another.
VARIABLES = {variables}


class Model(nn.Module):
    """{title} files: runtime.Files of the directory of this source."""

    def __init__(self, files):
        super().__init__()
'''

_TRANSFORM = '        """The raw features as numbers, by name: what has no parameter."""'
_NUMERIC = '        """The outputs, from what `transform` returns."""'

_ON_THE_DEVICE = "where_the_weights_are"

_GUESSED = """, whose
# names are valid here too. A guessed name stands in the scopes of feature columns alone"""

_ROWS = """
# The model takes {} rows at a time, as the graph does: repeat a row where there are fewer, and drop
# what it gives."""

_FROZEN = """
The graph was frozen: its variables are constants. The model scores, but has nothing to train.
"""

_TAIL = '''

def load(directory=os.path.dirname(os.path.abspath(__file__))):
    """The model with the weights that `semisync convert --model` wrote into `directory`."""
    return runtime.load(Model(runtime.Files(directory)), directory, VARIABLES)
'''


def model_source(
    emitter: Emitter,
    outputs: Sequence[str],
    parameters: Sequence[Parameter],
    constants: Constants,
    tables: Mapping[str, str],
    origin: str,
    frozen: bool,
    rows: Optional[int],
) -> str:
    """The file, as text; names of constants that it does not use are dropped from `constants`.

    Args:
        frozen: whether the graph has no variables.
        rows: the only number that it takes; None: any.
    """
    results = [value.tensor for value in emitter.outputs]
    free = {"self." + name for name in (*constants.arrays, *tables)}
    parts = split(emitter.block, results, free)
    transform, numeric = _methods(parts, results, bool(emitter.inputs))
    on_the_cpu, moving = _attributes(transform), _attributes(numeric)
    for name in [name for name in constants.arrays if name not in on_the_cpu | moving]:
        del constants.arrays[name]
    # `transform` runs on the CPU; a constant that `numeric` reads too moves with the module.
    for name in constants.tensors() & on_the_cpu & moving:
        transform = put(transform, f"self.{name}", f"self.{name}.cpu()")
    lines = [
        *_modules(emitter.modules, parameters),
        *(f"self.{name} = {made}" for name, made in tables.items()),
        *(constants.statement(name, name in moving) for name in constants.arrays),
    ]
    text = _HEAD.format(
        title="A TensorFlow model in torch.",
        origin=_in_docstring(origin),
        frozen=_FROZEN if frozen else "",
        guessed=_GUESSED if any(one.guessed for one in emitter.inputs.values()) else "",
        rows="" if rows is None else _ROWS.format(rows),
        inputs=_mapping(_inputs(list(emitter.inputs.values()), rows)),
        outputs=list(outputs),
        flags=emitter.flags,
        variables=_mapping([_variable(parameter) for parameter in parameters]),
        imports=_imports("".join(lines) + transform + numeric),
    )
    text += "".join(f"        {line}\n" for line in lines)
    return laid_out(text + transform + numeric + _TAIL)


def _in_docstring(text: str) -> str:
    """Text that comes from outside, such as a file's name, within three double quotes."""
    return repr(text)[1:-1].replace('"', '\\"')


def _imports(code: str) -> str:
    """The imports that the code needs beside those of every model.py, in their order."""
    code = masked(code)

    def of(name: str, statement: str) -> str:
        return f"{statement}\n" if re.search(rf"(?<![\w.]){name}\.", code) else ""

    standard = of("math", "import math") + "import os\n"
    torch = of("torch", "import torch") + of("torchrec", "import torchrec")
    parts = "from torch import nn\n" + of("F", "from torch.nn import functional as F")
    return f"{standard}\n{torch}{parts}"


def _attributes(methods: str) -> Set[str]:
    return set(re.findall(r"\bself\.(\w+)", masked(methods)))


def _methods(parts: Parts, results: Sequence[str], reads: bool) -> Tuple[str, str]:
    """For a model of two parts the source of `forward` and `transform`, and that of `numeric`; for
    a model of one part "" and the source of `forward`.

    Args:
        reads: whether the model has inputs.
    """
    first = ["        inputs = runtime.by_name(inputs, INPUTS)"] if reads else []
    returned = f"        return {', '.join(results)}"
    if not parts.handed:
        lines = [*first, *render(parts.numeric, results, 2), returned]
        return "", _method("forward", "inputs", lines, _ON_THE_DEVICE)
    handed = ", ".join(f"{name!r}: {name}" for name in parts.handed)
    both = Block([*parts.transform.statements, Return(f"{{{handed}}}")])
    transform = [*first, *render(both, [], 2)]
    numeric = [*render(parts.numeric, results, 2), returned]
    return (
        _method("forward", "inputs", ["        return self.numeric(self.transform(inputs))"])
        + _method("transform", "inputs", [_TRANSFORM, *transform], "on_the_cpu"),
        _method("numeric", GIVEN, [_NUMERIC, *numeric], _ON_THE_DEVICE),
    )


def _method(name: str, argument: str, lines: Sequence[str], decorator: str = "") -> str:
    decorated = f"    @runtime.{decorator}\n" if decorator else ""
    head = f"\n{decorated}    def {name}(self, {argument}):\n"
    return head + "".join(f"{line}\n" for line in lines)


def _mapping(entries: Sequence[str]) -> str:
    return "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}" if entries else "{}"


def _modules(modules: Mapping[str, str], parameters: Sequence[Parameter]) -> List[str]:
    lines = [f"self.{name} = {made}" for name, made in modules.items()]
    for parameter in parameters:
        # A module makes its own parameters.
        if parameter.attribute.partition(".")[0] in modules:
            continue
        empty = f"torch.empty({list(parameter.size)}, dtype={torch_type(parameter.dtype)})"
        empty = empty.replace(", dtype=torch.float32", "")
        name = parameter.attribute
        if parameter.trainable:
            lines.append(f"self.{name} = nn.Parameter({empty})")
        else:
            lines.append(f"self.register_buffer({name!r}, {empty})")
    return lines


def _variable(parameter: Parameter) -> str:
    # Only what differs from the defaults of runtime.Variable is written.
    more = "" if parameter.axes is None else f", axes={parameter.axes}"
    more += "" if parameter.rows is None else f", rows={parameter.rows}"
    return f"{parameter.attribute!r}: runtime.Variable({parameter.variable!r}{more})"


def _inputs(features: Sequence[Input], rows: Optional[int]) -> List[str]:
    """The entries of INPUTS, one per feature. If no feature fixes the number of rows that the graph
    takes, each has `rows`."""
    if any(one.shape and one.shape[0] for one in features if one.part is None):
        rows = None
    parts: Dict[str, List[Input]] = {}
    for feature in features:
        parts.setdefault(feature.name, []).append(feature)
    return [f"{name!r}: runtime.Input({_input(some, rows)})" for name, some in parts.items()]


def _input(parts: Sequence[Input], rows: Optional[int]) -> str:
    """The arguments of the runtime.Input of one feature, whose `parts` the graph reads."""
    first, optional = parts[0], all(part.optional for part in parts)
    shape, dtype = first.shape, first.dtype
    if first.part is not None:
        # Part 0 of a sparse feature is its indices [n, rank], part 1 its values.
        told = {part.part: part for part in parts}
        indices = told[0].shape if 0 in told else None
        rank = 2 if indices is None or len(indices) != 2 else indices[1]
        shape = (None,) * (rank or 2)
        dtype = told[1].dtype if 1 in told else None
    elif shape and shape[0] is None:
        shape = (rows, *shape[1:])
    sizes = None if shape is None else list(shape)
    more = ", optional=True" if optional else ""
    more += ", guessed=True" if first.guessed else ""
    return f"{dtype!r}, {sizes}, {list(first.tensors)}{more}"
