"""The launchers' shared records, besides who is there.

ROOT/generation      by the leader: the members, and in its content
    shape            the job's `Shape`
    addresses        {place: HOST:PORT}, of all that ever came
    fixed            {place: HOST:PORT} which the parameter servers know for ever
    files            the files that the chief's launcher hands out, or null, see `launch.shipment`
    configuration    the newest version of the configuration when the run began: of an earlier run
    started          null until the commands start, then whom nobody waited for any longer
    over             null until the chief has ended well, then the seconds that the others have to
                     end: no command is started any more
    outcome          null while the job runs; then `code`, `why` and `hung`, who had to be stopped
ROOT/ready/ID-N-S    by the launcher ID: it has what its command needs in generation N; in session S
ROOT/ended/PLACE     by a launcher whose command has ended for good: `id`, `code`, `why`
ROOT/training        by the chief's: the chief's latest report of the training, see
                     `semisync.cluster.status.document`
"""

import contextlib
import json
from typing import Any, Dict, Optional

from semisync.cluster.job.places import Shape
from semisync.cluster.zookeeper.client import NodeExists
from semisync.cluster.zookeeper.generation import Generation
from semisync.common import json_text


def content(
    shape: Shape,
    addresses: Dict[str, str],
    fixed: Dict[str, str],
    files: Optional[Dict[str, Any]] = None,
    configuration: int = 0,
) -> Dict[str, Any]:
    """The content of a generation that begins so."""
    return {
        "shape": shape._asdict(),
        "addresses": addresses,
        "fixed": fixed,
        "files": files,
        "configuration": configuration,
        "started": None,
        "over": None,
        "outcome": None,
    }


def is_over(generation: Generation) -> bool:
    """Whether the chief has ended well."""
    return generation.content["over"] is not None


def outcome_of(generation: Generation):
    """`code`, `why` and `hung` of the job's end, or None while it runs."""
    return generation.content["outcome"]


def is_started(generation: Generation) -> bool:
    """Whether the commands of a generation may start."""
    return generation.content["started"] is not None


def write_ready(client, root, id, number):
    """Writes down that a launcher is ready for a generation, until its session ends."""
    path = "{}/ready/{}-{}-{:x}".format(root, id, number, client.session or 0)
    with contextlib.suppress(NodeExists):
        client.create(path, b"", ephemeral=True)


def read_ready(client, root, watch=None):
    """{(launcher, generation)} of those who are ready."""
    above = "{}/ready".format(root)
    client.ensure(above)
    parts = [name.split("-") for name in client.children(above, watch)]
    return {(id, int(number)) for id, number, _ in parts}


def write_end(client, root, name, id, code, why):
    """Writes down how a command ended for good."""
    path = "{}/ended/{}".format(root, name)
    value = json.dumps({"id": id, "code": code, "why": why}).encode()
    try:
        client.create(path, value)
    except NodeExists:  # of an earlier run
        client.put(path, value, -1)


def read_ends(client, root, watch=None):
    """{place: the record of its launcher}, of this run and earlier ones."""
    above = "{}/ended".format(root)
    client.ensure(above)
    paths = ["{}/{}".format(above, name) for name in client.children(above, watch)]
    found = client.get_many(paths)
    return {path.rpartition("/")[2]: json_text.loads(value) for path, (value, _) in found.items()}


def write_training(client, root, training):
    """Records the chief's latest report of the training, a dict."""
    path = root + "/training"
    client.ensure(path)
    client.put(path, json.dumps(training).encode("utf-8"), -1)
