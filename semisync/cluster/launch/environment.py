"""A command's view of its job: environment variables, and words of the command line.

A TensorFlow process has TF_CONFIG. Where a script takes its cluster from the command line instead,
these words are replaced in it:

    {ps_hosts} {worker_hosts} {chief_hosts}   HOST:PORT, separated by commas
    {job_name} {task_index}                   this process
    {config}                                  the configuration's path, as in SEMISYNC_CONFIG
"""

import json

from semisync.cluster.job.places import CHIEF, PS, WORKER, index_of, place, role_of

CONFIG = "SEMISYNC_CONFIG"


def variables(shape, book, name, config=""):
    """Environment variables of a process.

    Args:
        shape: the job's `Shape`.
        book: {place: HOST:PORT}, of all places.
        name: the process's place.
        config: the path of its configuration; "": it has none.
    """
    cluster = {role: _hosts(shape, book, role) for role in (CHIEF, PS, WORKER)}
    told = {
        "cluster": {role: hosts for role, hosts in cluster.items() if hosts},
        "task": {"type": role_of(name), "index": index_of(name)},
    }
    more = {CONFIG: config} if config else {}
    return {"TF_CONFIG": json.dumps(told), "PYTHONUNBUFFERED": "1", **more}


def words(command, shape, book, name, config=""):
    """The command line of a process; see `variables`."""
    told = {
        "{%s_hosts}" % role: ",".join(_hosts(shape, book, role)) for role in (PS, WORKER, CHIEF)
    }
    told.update({"{job_name}": role_of(name), "{task_index}": str(index_of(name))})
    if config:
        told["{config}"] = config
    return [_replaced(word, told) for word in command]


def _replaced(word, told):
    for token, value in told.items():
        word = word.replace(token, value)
    return word


def _hosts(shape, book, role):
    return [book[place(role, index)] for index in range(shape.how_many(role))]
