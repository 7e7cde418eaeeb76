"""Compares converted programs with what TensorFlow computed.

python -m tests.model.control.compare FOLDER    after write_programs.py; names what differs
"""

import json
import pathlib
import sys

import numpy
import torch

from migrate.model.load import load_model
from migrate.model.training.build import build_training
from semisync.common.errors import BadInput
from tests.model.control.graphs import FEEDS, fed


def check(folder):
    """AssertionError where torch computes something else than what `graphs.keep` wrote."""
    folder = pathlib.Path(folder)
    program = json.loads((folder / "program.json").read_text())
    names = ["y", "z"][: len(program["outputs"])]
    frozen = program["kept"] == "frozen"
    model = load_model(folder / ("frozen.pb" if frozen else "model"), output=names)
    with numpy.load(folder / "expected.npz") as expected:
        for number, feed in enumerate(FEEDS):
            x, matrix = map(torch.from_numpy, fed(feed))
            x.requires_grad_()
            found = model({"x": x, "m": matrix})
            found = dict(zip(names, found if isinstance(found, tuple) else [found]))
            if program["gradients"]:
                found.update(_gradients(sum(one.sum() for one in found.values()), x, model))
            for name, value in found.items():
                # Where nothing depends on what is fed, TensorFlow has no gradient.
                wanted = expected.get(f"{number}/{name}", numpy.zeros_like(value.detach()))
                told = f"{name} of feed {number} of {json.dumps(program)}"
                numpy.testing.assert_allclose(value.detach(), wanted, 1e-4, 1e-5, err_msg=told)
        # TensorFlow also trains by a gradient of zeros what no output depends on.
        if program["kept"] == "trained" and "w" in dict(model.named_parameters()):
            _check_steps(folder / "model", expected)


def _check_steps(prefix, expected):
    training = build_training(prefix)
    for number, feed in enumerate(FEEDS):
        x, matrix = map(torch.from_numpy, fed(feed))
        training.optimizer.zero_grad()
        loss = training.module({"x": x, "m": matrix})
        if loss.requires_grad:  # else the branch that ran does not depend on the variable
            loss.backward()
            training.optimizer.step()
        w = dict(training.module.named_parameters())["w"]
        told = f"w after step {number} of {prefix}"
        numpy.testing.assert_allclose(w.detach(), expected[f"w/{number}"], 1e-4, 1e-5, err_msg=told)


def _gradients(total, x, model):
    parameters = dict(model.named_parameters())
    of = {"d/x": x, **({"d/w": parameters["w"]} if "w" in parameters else {})}
    if not total.requires_grad:
        return {name: torch.zeros_like(one) for name, one in of.items()}
    return dict(
        zip(
            of,
            torch.autograd.grad(
                total, list(of.values()), allow_unused=True, materialize_grads=True
            ),
        )
    )


def main(folder):
    """Checks every program in a folder; returns how many differ."""
    wrong = refused = 0
    folders = [path.parent for path in sorted(pathlib.Path(folder).glob("*/program.json"))]
    for one in folders:
        try:
            check(one)
        except BadInput as error:
            refused += 1
            print(f"{one} is refused: {error}")
        except Exception as error:
            wrong += 1
            print(f"{one} differs: {type(error).__name__} {error}")
    print(f"{len(folders)} programs, {wrong} differ, {refused} are refused")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
