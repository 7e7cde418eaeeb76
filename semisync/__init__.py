"""Semi-synchronous training for TensorFlow parameter servers.

Nothing heavy is imported before it is used: `import semisync` needs no TensorFlow.
"""

import importlib

_HOME = {
    "ADMITTED": "semisync.fate",
    "DECAYED": "semisync.fate",
    "Exponential": "semisync.staleness",
    "Fate": "semisync.fate",
    "GlobalBatchOptimizer": "semisync.optimizer",
    "Hinge": "semisync.staleness",
    "Inverse": "semisync.staleness",
    "LOST": "semisync.fate",
    "PENDING": "semisync.fate",
    "PacedSteps": "semisync.pacing",
    "Polynomial": "semisync.staleness",
    "STALE": "semisync.fate",
    "Threshold": "semisync.staleness",
    "TraceHook": "semisync.worker.trace",
    "restore_hook": "semisync.restore",
    "wait_until_initialised": "semisync.cluster.session",
    "wrap": "semisync.presets",
    "worker_config": "semisync.cluster.session",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'semisync' has no attribute {!r}".format(name))


def __dir__():
    return __all__
