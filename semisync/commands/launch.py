"""`semisync launch`: runs one process of a job, or with --local all of them."""

import argparse
import concurrent.futures
import resource
import signal

from semisync.answers import add_json, answer
from semisync.cluster.launch import child, codes
from semisync.cluster.launch.local import LocalJob
from semisync.cluster.launch.member import Launcher
from semisync.cluster.launch.order import Order
from semisync.cluster.launch.port import own_host
from semisync.cluster.launch.shipment import read_config
from semisync.cluster.record import CHIEF, PS, WORKER, Shape, role_of, spoken
from semisync.cluster.zookeeper.options import add_access, connect, root_of
from semisync.common.errors import UsageError

SCHEMA = "semisync.launch/1"
RESTARTS = 3
LINGER = 300.0  # seconds
MANY_FILES = 65536
LOOK_FOR_SIGNALS = 0.1  # seconds
EXAMPLES = """
examples:
  semisync launch --local --ps 2 --workers 4 -- python train.py
  semisync launch --local --ps 2 --workers 4 --ship src/ vocabularies -- python train.py
  semisync launch --zookeeper zk1:2181,zk2:2181 --job ctr --role ps --ps 2 --workers 4 \\
      -- python train.py
  semisync launch --zookeeper zk1:2181,zk2:2181 --job ctr --role worker --ps 2 --workers 4 \\
      -- python train.py --ps_hosts={ps_hosts} --worker_hosts={worker_hosts} \\
      --job_name={job_name} --task_index={task_index}

With --json, what the processes print goes to stderr as well.

"""


def _seconds(text):
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _count(text):
    if int(text) < 0:
        raise ValueError(text)
    return int(text)


def configure(parser):
    """Declares the arguments."""
    parser.epilog = EXAMPLES + codes.listing() + "\n"
    _add_place(parser)
    _add_shape(parser.add_argument_group("the job's processes"))
    _add_files(parser.add_argument_group("files, which the chief's launcher hands out"))
    _add_waits(parser.add_argument_group("waits and restarts"))
    add_access(parser.add_argument_group("access to ZooKeeper"))
    add_json(parser, "how each process ended, once the job is over,")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")


def _add_place(parser):
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--local", action="store_true", help="the whole job on this machine")
    where.add_argument(
        "--zookeeper", metavar="HOST:PORT,...[/PATH]", help="where the job's launchers meet"
    )
    add = parser.add_argument
    add("--job", metavar="ID", help="the same for all of a job")
    add("--role", choices=[PS, WORKER, CHIEF], help="of this process")
    add("--index", type=int, metavar="I", help="its number; default: a free one")
    add("--host", help="of this machine, for the others; default: its address")


def _add_shape(group):
    add = group.add_argument
    add("--ps", type=int, default=0, metavar="P", help="how many servers in all")
    add("--workers", type=int, default=0, metavar="N", help="how many workers")
    add(
        "--chief",
        action="store_true",
        help="the job has a chief besides the workers, as an Estimator's does; else worker 0 is it",
    )
    add(
        "--workers-may-move",
        action="store_true",
        help="of a parameter server: workers may come back on other machines; costs a copy",
    )


def _add_files(group):
    add = group.add_argument
    add(
        "--ship",
        nargs="+",
        default=[],
        metavar="PATH",
        help="files and folders, in whose copy every command of the job runs; of a folder that "
        "ends in a slash, the contents",
    )
    add(
        "--config",
        metavar="FILE",
        help="JSON that every command finds at {config} and $SEMISYNC_CONFIG; while the job runs "
        "it is changed by `semisync config publish`, or with --local by saving FILE",
    )


def _add_waits(group):
    add = group.add_argument
    add(
        "--restarts",
        type=_count,
        metavar="K",
        help="how often to start the command again when it fails; default: {}, of a parameter "
        "server 0".format(RESTARTS),
    )
    add(
        "--deadline",
        type=_seconds,
        default=600.0,
        metavar="S",
        help="seconds to wait for the processes that the job needs; default: 600",
    )
    add(
        "--grace",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="seconds between SIGTERM and SIGKILL; default: 10",
    )
    add(
        "--linger",
        type=_seconds,
        default=LINGER,
        metavar="S",
        help="seconds that the other workers have to end once the chief has ended well; then they "
        "are stopped, and named; default: {:.0f}".format(LINGER),
    )
    add(
        "--session-timeout",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="seconds of silence after which ZooKeeper counts a launcher as lost; default: 10",
    )


def run(args):
    """Runs the launcher, or all of a local job; returns the exit code."""
    _allow_many_files()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    shape = Shape(args.ps, args.workers, args.chief or args.role == CHIEF)
    shape.check()
    child.check(command)
    order = Order(
        shape=shape,
        role=args.role,
        number=args.index,
        command=command,
        restarts=_restarts(args)(args.role),
        deadline=args.deadline,
        grace=args.grace,
        linger=args.linger,
        host=args.host,
        moving=args.workers_may_move,
        ship=args.ship,
        config=args.config,
    )
    if order.config is not None:
        read_config(order.config)
    ends = _local(args, order) if args.local else _with_zookeeper(args, order)
    code = codes.of_all(ends.values())
    places = [dict(end._asdict(), place=spoken(name)) for name, end in ends.items()]
    answer(args.json, {"schema": SCHEMA, "job": args.job, "code": code, "places": places})
    return code


def _allow_many_files():
    """Each worker that is reached through this launcher takes several of its open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < MANY_FILES:
        most = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _restarts(args):
    def of_role(role):
        if args.restarts is not None:
            return args.restarts
        return 0 if role == PS else RESTARTS

    return of_role


def _local(args, order):
    for name in ("role", "index", "host", "auth", "tls_ca"):
        if getattr(args, name) is not None:
            raise UsageError("--{} has no meaning with --local".format(name.replace("_", "-")))
    job = LocalJob(order, _restarts(args))
    return _until_signal(job.run, job.stop)


def _with_zookeeper(args, order):
    root = root_of(args.job)
    order = _placed(order)._replace(host=args.host or own_host(args.zookeeper))
    client = connect(args, args.session_timeout)
    try:
        launcher = Launcher(client, root, order)
        end = _until_signal(launcher.run, launcher.stop)
    finally:
        client.close()
    if end.code:
        launcher.output.say(end.why)
    return {launcher.name: end}


def _placed(order):
    """The order, whose place must be one of the job's."""
    if order.role is None:
        raise UsageError("--role is missing: ps, worker or chief")
    if order.ship or order.config:
        chief = role_of(order.shape.chief_place)
        if order.role != chief or order.number not in (None, 0):
            raise UsageError(
                "--ship and --config are for the chief's launcher, which has --role {} here and "
                "--index 0".format(chief)
            )
        order = order._replace(number=0)
    count = order.shape.how_many(order.role)
    if not count or not 0 <= (order.number or 0) < count:
        raise UsageError(
            "the job has no such place: {} of them with {}".format(count, order.shape.options)
        )
    return order


def _until_signal(run, stop):
    """Calls `run`, and `stop` with the number of a signal; the handler itself takes no lock."""
    came = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, _: came.append(number))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        while not running.done():
            concurrent.futures.wait([running], LOOK_FOR_SIGNALS)
            if came:
                stop(came[0])
        return running.result()
