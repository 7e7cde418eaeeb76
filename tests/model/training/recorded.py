"""What `write_steps` and the zoo recorded, as `compare_steps` takes it."""

import pathlib

import numpy as np
import torch

from migrate.model.training.build import build_training
from migrate.model.training.steps import recorded_step
from tests.model.features import features_of


def zoo_training(model):
    """The training of a zoo model as its steps were recorded: without noise."""
    first = features_of(model.steps()[0][0])
    flags = {flag["point"]: flag["steps"] for flag in model.said["flags"]}
    given = {name: str(first[name].dtype).split(".")[1] for name in model.said["drawn"]}
    training = build_training(
        model.prefix, given=given, feeds={name: first[name] for name in flags}
    )
    for value in flags.values():
        if isinstance(value, bool):
            training.module.train(value)
    return training


def zoo_steps(model):
    """Its recorded steps."""
    return [
        recorded_step(features_of(points), float(loss), values)
        for points, loss, values in model.steps()
    ]


def assert_losses(training, batch, losses):
    """That steps on one batch have these losses, each before its update."""
    for wanted in losses:
        training.optimizer.zero_grad()
        found = training.module(batch)
        np.testing.assert_allclose(found.detach(), wanted, 1e-5)
        found.backward()
        training.optimizer.step()


class Job:
    """One job of `write_steps`. rates: the learning rate of each step, by TensorFlow."""

    def __init__(self, folder):
        self.name = pathlib.Path(folder).name
        self.prefix = str(pathlib.Path(folder) / "model.ckpt-10")
        with np.load(pathlib.Path(folder) / "steps.npz") as file:
            kept = dict(file)
        losses, self.rates = kept.pop("loss"), kept.pop("rate")
        after = {
            key[len("after/") :]: kept.pop(key) for key in list(kept) if key.startswith("after/")
        }
        points = [{} for _ in losses]
        for key, value in kept.items():
            step, point = key.split("/", 1)
            points[int(step)][point] = value
        self.steps = [
            recorded_step(
                features_of(fed), float(loss), {key: all_[k + 1] for key, all_ in after.items()}
            )
            for k, (fed, loss) in enumerate(zip(points, losses))
        ]

    def training(self, meta=None):
        """The training that goes on from its checkpoint, as the MetaGraph at `meta` says."""
        feeds = {"rate_scale": torch.tensor(1.0)} if self.name == "fed" else {}
        return build_training(self.prefix, meta, feeds=feeds)


def jobs(folder):
    """The jobs of a folder, by name."""
    return {
        path.parent.name: Job(path.parent)
        for path in sorted(pathlib.Path(folder).glob("*/steps.npz"))
    }
