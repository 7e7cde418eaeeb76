"""One process of a job that imports rewritten MetaGraphs: a PS, or a worker that trains each.

The spec holds `cases`, a list of dicts:

    name     unique; also the variable scope
    model    the name of a class of `tests.rewrite.models`
    meta     path of the MetaGraph
    train    name of what is fetched
    feeds    names of what is fed, see `training.Exported`
    batches  how many batches each worker trains
    sizes    how many examples are in a worker's batch, a list by task

and `out`, a directory: worker k writes CASE.k.json with the ticket of each of its batches; the
chief writes CASE.audit (JSON lines), and CASE.before.npz and CASE.after.npz with every variable.
"""

import json
import os

import semisync
from semisync.cluster.barrier import Barrier
from semisync.common.compat import tf
from tests.rewrite import models
from tests.rewrite.training import fed
from tests.wrap.job import After, Before, main, placement


def train(case, spec, server):
    """Trains one case in this worker."""
    task, chief = spec["task"], spec["task"] == 0
    out = os.path.join(spec["out"], case["name"])
    model = getattr(models, case["model"])()
    with tf.Graph().as_default() as graph:
        with tf.device(placement(spec)):
            tf.train.import_meta_graph(case["meta"])
        hook = semisync.restore_hook(chief, audit=out + ".audit" if chief else None)
        hooks = [Barrier(case["name"], task, len(spec["cluster"]["worker"])), hook]
        if chief:
            hooks = [Before(out)] + hooks + [After(out)]
        else:
            semisync.wait_until_initialised(server.target, semisync.worker_config(task))
        ticket = hook.handles.worker.ticket
        log = []
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            hooks=hooks,
            config=semisync.worker_config(task),
        ) as session:
            for number in range(case["batches"]):
                holds = int(session.run(ticket))
                batch = model.batch(task, number, case["sizes"][task])
                session.run(case["train"], fed(case["feeds"], batch))
                log.append({"ticket": holds, "task": task, "number": number})
        devices = {op.device for op in graph.get_operations()}
    assert not any("/job:worker" in d and "task:%d" % task not in d for d in devices), devices
    with open("%s.%d.json" % (out, task), "w") as file:
        json.dump(log, file)


if __name__ == "__main__":
    main(train)
