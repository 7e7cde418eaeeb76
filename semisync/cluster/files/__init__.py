"""Files over HTTP among the machines of a job: signed, checked chunk by chunk, served on.

1. One node *publishes* a folder: it makes a manifest, whose SHA-256, the digest, names it.
2. The digest and the node's URL go to the others by a way that they trust, such as ZooKeeper.
3. Every other node *downloads*: chunks from the root and from each other, each checked against the
   manifest before it is written, resumed where it was interrupted, placed when whole.
4. While it downloads, and after, a node serves what it has. About one copy leaves the root.

Every request is signed with the job's key. `semisync.cluster.files.node` has an example;
docs/files.md tells how to use it, docs/security.md what it protects from.
"""

import importlib

_HOME = {
    "Configuration": "semisync.cluster.files.configurations",
    "Configurations": "semisync.cluster.files.configurations",
    "Conflict": "semisync.cluster.files.configurations",
    "Manifest": "semisync.cluster.files.manifest",
    "Node": "semisync.cluster.files.node",
    "Tls": "semisync.cluster.files.tls",
    "make_manifest": "semisync.cluster.files.manifest",
    "read_key": "semisync.cluster.files.signing",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'semisync.cluster.files' has no attribute {!r}".format(name))


def __dir__():
    return __all__
