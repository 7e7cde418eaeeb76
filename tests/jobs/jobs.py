"""How each job is started: the flags by which its script takes what every job needs.

An argument is a template of

    {ps_hosts} {worker_hosts} {job} {task}   its cluster, and which process it is
    {data}           the CSV file of this process
    {model}          the directory of the checkpoints
    {batch_size}     rows in a batch
    {steps}          how many global steps to train; a job without it trains until its data ends
"""

import collections


class Job(collections.namedtuple("Job", "name ps arguments alone synchronous audits graph")):
    """One job.

    Attributes:
        name: of the script.
        ps: how many parameter servers.
        arguments: of the command line, a list of templates.
        alone: more arguments, with which a single worker trains with the plain optimizer.
        synchronous: True where the unchanged job aggregates the batches of its workers.
        audits: the audit logs that the changed job writes, one per optimizer.
        graph: the script that exports the graph that the job imports, or None.
    """

    @property
    def has_chief(self):
        """True for an Estimator, whose worker 0 is the job "chief" of TF_CONFIG."""
        return not any("{task}" in argument for argument in self.arguments)

    @property
    def trains_to_a_step(self):
        """False for a job that trains until its data ends."""
        return any("{steps}" in argument for argument in self.arguments)


def _job(name, ps, arguments, alone=(), synchronous=False, audits=("audit.jsonl",), graph=None):
    return Job(name, ps, arguments.split(), list(alone), synchronous, audits, graph)


_HOSTS = "--ps_hosts={ps_hosts} --worker_hosts={worker_hosts} --job_name={job} "
_CLUSTER = _HOSTS + "--task_index={task} "

# The first of them run in the ways that differ most: a Supervisor, synchronously; a
# MonitoredTrainingSession; an Estimator; slim's loop.
JOBS = [
    _job(
        "supervisor_sync",
        1,
        _CLUSTER + "--train_file={data} --train_dir={model} --batch_size={batch_size} "
        "--train_steps={steps} --sync_replicas",
        alone=["--nosync_replicas"],
        synchronous=True,
    ),
    _job(
        "fed_learning_rate",
        2,
        _CLUSTER + "--data={data} --ckpt_dir={model} --batch_size={batch_size}",
    ),
    _job(
        "estimator_model_fn",
        2,
        "--model_dir={model} --train_data={data} --test_data={data} --batch_size={batch_size} "
        "--train_steps={steps}",
    ),
    _job(
        "slim_train",
        1,
        "--ps_hosts={ps_hosts} --master_hosts={worker_hosts} --job_name={job} --task={task} "
        "--dataset_dir={data} --train_dir={model} --batch_size={batch_size} "
        "--max_number_of_steps={steps}",
    ),
    _job(
        "session_sync",
        2,
        _CLUSTER + "--train_file={data} --checkpoint_dir={model} --batch_size={batch_size} "
        "--train_steps={steps}",
        alone=["--sync_replicas=false"],
        synchronous=True,
    ),
    _job(
        "learning_rate_hook",
        1,
        _CLUSTER + "--train_data_path={data} --log_root={model} --batch_size={batch_size}",
    ),
    _job(
        "dnn_classifier",
        1,
        "--model_dir={model} --train_files={data} --eval_files={data} --batch_size={batch_size}",
    ),
    _job(
        "linear_classifier",
        2,
        "--job-dir={model} --train={data} --eval={data} --batch-size={batch_size} "
        "--max-steps={steps}",
    ),
    _job(
        "wide_and_deep",
        1,
        "--model_dir={model} --train_data={data} --test_data={data} --batch_size={batch_size}",
        audits=("linear.jsonl", "dnn.jsonl"),
    ),
    _job(
        "optimize_loss",
        2,
        _CLUSTER + "--input={data} --model_dir={model} --batch_size={batch_size}",
    ),
    _job(
        "keras_layers",
        1,
        _CLUSTER + "--training_data={data} --checkpoint_dir={model} --batch_size={batch_size}",
        # A run that finds no more data may still decay the means of TensorFlow's sparse Adam.
        alone=["--train_steps={steps}"],
    ),
    _job(
        "imported_graph",
        2,
        _CLUSTER + "--train_data={data} --checkpoint_path={model} --batch_size={batch_size}",
        graph="export_graph",
    ),
]
OF_EACH_KIND = 4
