"""The manifests of docs/schedulers.md are what the operators' published schemas say."""

import copy

import pytest

from tests.schedulers.manifests import manifest
from tests.schedulers.schema import complaints

KINDS = {"TFJob": "KubeflowOrgV1TFJob", "PyTorchJob": "KubeflowOrgV1PyTorchJob"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_manifest_of_the_page_is_what_the_schema_says(kind):
    assert complaints(manifest(kind), KINDS[kind]) == []


def _workers(spec):
    return spec["tfReplicaSpecs"]["Worker"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda spec: spec.update(backoffLimit=3), "KubeflowOrgV1TFJobSpec has no field backoff"),
        (lambda spec: spec.pop("tfReplicaSpecs"), "manifest.spec lacks tfReplicaSpecs"),
        (
            lambda spec: _workers(spec).update(replicas="2"),
            "manifest.spec.tfReplicaSpecs.Worker.replicas is '2', expected int",
        ),
        (
            lambda spec: _workers(spec).update(replicas=True),
            "manifest.spec.tfReplicaSpecs.Worker.replicas is True, expected int",
        ),
        (
            lambda spec: _workers(spec)["template"].update(containers=[]),
            "V1PodTemplateSpec has no field containers",
        ),
        (
            lambda spec: _workers(spec)["template"]["spec"].update(containers={}),
            "template.spec.containers is {}, expected a list",
        ),
        (
            lambda spec: _workers(spec)["template"]["spec"]["containers"][0].update(name=None),
            "containers.0.name is None, expected str",
        ),
    ],
)
def test_a_manifest_that_is_not_is_complained_of(damage, sentence):
    damaged = copy.deepcopy(manifest("TFJob"))
    damage(damaged["spec"])
    assert any(sentence in each for each in complaints(damaged, KINDS["TFJob"]))
