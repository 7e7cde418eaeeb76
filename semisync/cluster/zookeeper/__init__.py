"""Coordination over ZooKeeper: membership, leadership, and the state that all share.

`client` is the interface that the recipes need; `connection` has it from a server, `memory` within
one process. With a user, `ownership` keeps a job's nodes the user's alone. The recipes are
`membership`, `leader` and `generation`:

    client = Connection("zk1:2181,zk2:2181/ctr")
    Membership(client, "/job", "worker-0", {"id": id}).register()  # again when the session changes
    election = Election(client, "/job", id, "worker 0")
    election.start()
    if election.epoch is not None:  # this process leads
        here = {name: about["id"] for name, about in members(client, "/job").items()}
        publish(election, "/job", Generation(1, here, {}))
    ...
    read(client, "/job", watch)  # in every member
"""
