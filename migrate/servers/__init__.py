"""A team's own sparse parameter server: a plug-in's description of its files and ops.

    # acme_server.py, named by --plugin acme_server, or installed with the entry point
    # [options.entry_points] semisync.servers = acme = acme_server
    from migrate.servers import LookUp, Shard, Table, Training

    def read_tables(path): ...       # files       -> {name: Table}, or None
    def look_up(op): ...             # op of graph -> LookUp, or None
    def train(op): ...               # op of graph -> Training, or None

1. A plug-in is a module with one or more of these functions. docs/servers.md has a whole one.
2. `read_tables` is given the command's argument: the path of a dump, or the prefix of a
   checkpoint, beside which the dump lies. All that reads hash tables then reads these.
3. `look_up` and `train` are given each op of a graph, as `migrate.graph.lowering.by_server.Op`.
   All that reads graphs then takes those ops for look-ups and updates by raw id; they need not be
   installed.
"""

from migrate.servers.descriptions import LookUp, Shard, Table, Training
from migrate.servers.plugins import add_plugins

__all__ = [
    "LookUp",
    "Shard",
    "Table",
    "Training",
    "add_plugins",
]
