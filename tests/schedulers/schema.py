"""Whether a manifest is what an operator's published schema says, without a cluster.

The clients `kubeflow-training` and `kubernetes` are generated from the schemas that the operator
and Kubernetes publish: a file per object, whose class has the type of each field and its name in
JSON, and whose constructor sets only the optional fields on a condition. The files are read, not
imported: the clients' own dependencies are of no use here.
"""

import ast
import functools
import importlib.metadata
import re

_SCALARS = {"str": str, "int": int, "bool": bool, "object": object, "datetime": str}
_PLACES = {
    "KubeflowOrg": ("kubeflow-training", "kubeflow/training/models"),
    "V1": ("kubernetes", "kubernetes/client/models"),
    "V2": ("kubernetes", "kubernetes/client/models"),
}


def complaints(value, kind, place="manifest"):
    """What is wrong with a value, a list of sentences.

    Args:
        kind: its type, such as "KubeflowOrgV1TFJob", "list[V1Container]" or "dict(str, str)".
    """
    several = re.fullmatch(r"(list\[|dict\(str, )(.+)[\])]", kind)
    if several:
        wanted = list if several.group(1) == "list[" else dict
        if not isinstance(value, wanted):
            return ["{} is {!r}, expected a {}".format(place, value, wanted.__name__)]
        pairs = enumerate(value) if wanted is list else value.items()
        return _all(complaints(v, several.group(2), "{}.{}".format(place, k)) for k, v in pairs)
    if kind in _SCALARS:
        fits = isinstance(value, _SCALARS[kind]) and isinstance(value, bool) == (kind == "bool")
        return (
            []
            if fits or kind == "object"
            else ["{} is {!r}, expected {}".format(place, value, kind)]
        )
    if not isinstance(value, dict):
        return ["{} is {!r}, expected fields of {}".format(place, value, kind)]
    types, required = _fields(kind)
    found = ["{} lacks {}".format(place, name) for name in sorted(required - set(value))]
    found += ["{} has no field {}".format(kind, name) for name in value if name not in types]
    known = ((name, each) for name, each in value.items() if name in types)
    return found + _all(complaints(v, types[k], "{}.{}".format(place, k)) for k, v in known)


def _all(lists):
    return [each for some in lists for each in some]


@functools.lru_cache(maxsize=None)
def _fields(kind):
    """({a field's name in JSON: its type}, the names of those that are required)"""
    distribution, folder = next(v for k, v in _PLACES.items() if kind.startswith(k))
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()
    path = importlib.metadata.distribution(distribution).locate_file(
        "{}/{}.py".format(folder, module)
    )
    (described,) = (
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    )
    tables = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in described.body
        if isinstance(node, ast.Assign)
    }
    names = tables["attribute_map"]
    (constructor,) = (node for node in described.body if getattr(node, "name", None) == "__init__")
    set_always = {
        target.attr
        for node in constructor.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    types = {names[name]: kind for name, kind in tables["openapi_types"].items()}
    return types, {name for attribute, name in names.items() if attribute in set_always}
