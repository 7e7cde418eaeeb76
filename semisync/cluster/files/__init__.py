"""Files over HTTP among the machines of a job: signed, checked chunk by chunk, resumed.

1. One node *publishes* a folder: it makes a manifest, whose SHA-256, the digest, names it.
2. The digest and the node's URL go to the others by a way that they trust, such as ZooKeeper.
3. Every other machine *downloads*: chunks from the nodes that have the folder, each checked against
   the manifest before it is written, resumed where it was interrupted, placed when whole.

Every request is signed with the job's key. `semisync.cluster.files.node` has an example;
docs/files.md tells how to use it, docs/launch/listening.md what it protects from.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
