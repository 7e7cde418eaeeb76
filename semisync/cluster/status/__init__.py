"""What a running job does: who leads, who is there, who is missed, and how the training goes.

    document    the JSON document that everything here shows
    reporter    the chief's hook that says how the training goes
    published   the document in ZooKeeper: what the launchers know, and what the chief said
    server      a page for people, /status.json for programs, /metrics for Prometheus
    command     `semisync status`

docs/files.md tells how to use it.
"""

import importlib

_HOME = {
    "Page": "semisync.cluster.status.server",
    "StatusHook": "semisync.cluster.status.reporter",
    "to_zookeeper": "semisync.cluster.status.published",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'semisync.cluster.status' has no attribute {!r}".format(name))


def __dir__():
    return __all__
