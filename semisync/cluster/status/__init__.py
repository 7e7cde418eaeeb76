"""The status of a running job: leader, members, missing processes, and the training's progress.

    document        the JSON document that everything here shows, read from ZooKeeper
    reporter        the chief's hook that reports the training's progress
    report_file     from the chief's process to its launcher
    text, metrics   the document as lines for people, and for Prometheus
    server          both over HTTP, and /status.json for programs

`semisync status` shows it; docs/launch/progress.md is its manual.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
