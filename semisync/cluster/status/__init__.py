"""The status of a running job: leader, members, missing processes, and the training's progress.

    document    the JSON document that everything here shows
    reporter    the chief's hook that reports the training's progress
    report_file from the chief's process to its launcher
    published   the document in ZooKeeper: the launchers' knowledge, and the chief's report
    server      lines for people, /status.json for programs, /metrics for Prometheus
    command     `semisync status`

docs/launch/progress.md is its manual.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
