"""What a running job does: who leads, who is there, who is missing, and how the training goes.

    document    the JSON document that everything here shows
    reporter    the chief's hook that says how the training goes
    report_file from the chief's process to its launcher
    published   the document in ZooKeeper: what the launchers know, and what the chief said
    server      lines for people, /status.json for programs, /metrics for Prometheus
    command     `semisync status`

docs/launch/progress.md tells how to use it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
