"""Semi-synchronous training for TensorFlow parameter servers.

Nothing heavy is imported before it is used: `import semisync` needs no TensorFlow.
"""

import importlib

_HOME = {
    "Exponential": "semisync.staleness",
    "GlobalBatchOptimizer": "semisync.optimizer",
    "Hinge": "semisync.staleness",
    "Inverse": "semisync.staleness",
    "Polynomial": "semisync.staleness",
    "Threshold": "semisync.staleness",
    "wait_until_initialised": "semisync.readiness",
    "worker_config": "semisync.readiness",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'semisync' has no attribute {!r}".format(name))


def __dir__():
    return __all__
