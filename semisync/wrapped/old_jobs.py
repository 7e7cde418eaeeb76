"""What jobs ask of SyncReplicasOptimizer and this library does another way: a sentence each."""

from semisync.common.errors import UsageError


class OldJob(UsageError, AttributeError):
    """An attribute of SyncReplicasOptimizer that GlobalBatchOptimizer has no use for."""


_SESSION = (
    "GlobalBatchOptimizer needs no {}: leave it out, pass "
    "hooks=[opt.make_session_run_hook(is_chief)] to tf.train.MonitoredTrainingSession, which takes "
    "the place of tf.train.Supervisor (docs/jobs.md has a whole job)"
)

RECIPES = {
    name: _SESSION.format(name)
    for name in (
        "chief_init_op",
        "get_chief_queue_runner",
        "get_init_tokens_op",
        "local_step_init_op",
        "ready_for_local_init_op",
    )
}
