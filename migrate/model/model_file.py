"""The text of model.py."""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence

from migrate.model.constants import Constants
from migrate.model.emitter import Emitter
from migrate.model.parameters import Parameter
from migrate.model.source.layout import laid_out
from migrate.model.source.statements import names_in, render

_HEAD = '''"""{title}

Converted from {origin}. `forward` takes the raw features, a mapping of

{features}

and returns {results}.
"""

import math
import os

import torch
{torchrec}from torch import nn
from torch.nn import functional as F

from migrate import runtime

# What the module's tensors are in TensorFlow, with the order of their axes where it is another.
VARIABLES = {{
{variables}
}}


class Model(nn.Module):
    """{title} files: runtime.Files of the directory of this source."""

    def __init__(self, files):
        super().__init__()
'''


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
) -> str:
    """The file, as text; names of constants that it does not use are dropped from `constants`."""
    results = [value.tensor for value in emitter.outputs]
    body = render(emitter.block, results, 2)
    used = {name for line in [*body, *results] for name in names_in(line)}
    unused = [name for name in constants.arrays if "self." + name not in used]
    for name in unused:
        del constants.arrays[name]
    lines = [
        *_modules(emitter.modules, parameters),
        *(f"self.{name} = {made}" for name, made in tables.items()),
        *(constants.statement(name) for name in constants.arrays),
    ]
    text = _HEAD.format(
        title="A TensorFlow model in torch.",
        origin=origin,
        features=_features(emitter),
        results=", ".join(outputs),
        variables="\n".join(f"    {_variable(parameter)}," for parameter in parameters),
        torchrec="import torchrec\n" if any("torchrec." in line for line in lines) else "",
    )
    text += "".join(f"        {line}\n" for line in lines)
    text += "\n    def forward(self, inputs):\n" + "\n".join(body)
    return laid_out(text + "\n        return " + ", ".join(results) + "\n" + _TAIL)


def _modules(modules: Mapping[str, str], parameters: Sequence[Parameter]) -> List[str]:
    lines = [f"self.{name} = {made}" for name, made in modules.items()]
    for parameter in parameters:
        if parameter.attribute.partition(".")[0] in modules:
            continue
        empty = f"torch.empty({list(parameter.size)}, dtype=torch.{parameter.dtype})"
        empty = empty.replace(", dtype=torch.float32", "")
        name = parameter.attribute
        if parameter.trainable:
            lines.append(f"self.{name} = nn.Parameter({empty})")
        else:
            lines.append(f"self.register_buffer({name!r}, {empty})")
    return lines


def _variable(parameter: Parameter) -> str:
    more = "" if parameter.axes is None else f", axes={parameter.axes}"
    more += "" if parameter.rows is None else f", rows={parameter.rows}"
    return f"{parameter.attribute!r}: runtime.Variable({parameter.variable!r}{more})"


def _features(emitter: Emitter) -> str:
    lines: Dict[str, str] = {}
    for feature in emitter.inputs.values():
        shape = "?" if feature.shape is None else list(feature.shape)
        shape = str(shape).replace("None", "batch", 1).replace("None", "?")
        text = f"sparse {feature.dtype}" if feature.part == 1 else f"{feature.dtype} {shape}"
        if feature.part in (None, 1):
            lines[feature.name] = text
    return "\n".join(f"    {name!r}: {text}" for name, text in lines.items())
