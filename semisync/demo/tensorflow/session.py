"""The session of a worker whose job itself decides when it saves and reports."""

import semisync
from semisync.common.compat import tf


def plain_session(server, task, hooks, timeout=120.0, **more):
    """A MonitoredTrainingSession, of worker 0 as the chief; it writes nothing.

    Args:
        server: the tf.train.Server of this process.
        task: of this worker.
        hooks: of the session.
        timeout: seconds in which the chief is to initialise the variables.
        more: further arguments of the session.
    """
    config = semisync.worker_config(task)
    if task:
        semisync.wait_until_initialised(server.target, config, timeout)
    return tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=not task,
        config=config,
        hooks=hooks,
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
        stop_grace_period_secs=2,  # SyncReplicasOptimizer's thread on the chief never ends
        **more,
    )
