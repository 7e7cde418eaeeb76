"""`semisync config`: changes the configuration of a job while it runs, or shows it."""

import argparse

from semisync.answers import add_json, answer
from semisync.cluster import record
from semisync.cluster.files import configurations
from semisync.cluster.launch.shipment import read_config
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper.options import add_access, connect, root_of
from semisync.common import exit_codes, json_text
from semisync.common.errors import BadInput
from semisync.common.terminal import say

SCHEMA = "semisync.config/1"
EXAMPLES = """
examples:
  semisync config publish --zookeeper zk1:2181,zk2:2181 --job ctr-7 rates.json
  semisync config publish --zookeeper zk1:2181,zk2:2181 --job ctr-7 --after 3 rates.json
  semisync config show --zookeeper zk1:2181,zk2:2181 --job ctr-7
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", required=True, metavar="publish, show")
    publishing = actions.add_parser("publish", help="replace it by a file")
    publishing.add_argument("file", metavar="FILE", help="the new configuration, in JSON")
    publishing.add_argument(
        "--after",
        type=int,
        metavar="N",
        help="publish only if version N, which `show` names, is still the newest",
    )
    for action in (publishing, actions.add_parser("show", help="print the newest version")):
        action.add_argument(
            "--zookeeper", required=True, metavar="HOST:PORT,...[/PATH]", help="where the job is"
        )
        action.add_argument("--job", required=True, metavar="ID", help="started with --config")
        add_json(action, "the version, and what `show` finds,")
        add_access(action)


def run(args: argparse.Namespace) -> int:
    """Publishes or shows a version; returns the exit code."""
    root, publishes = root_of(args.job), args.action == "publish"
    document = read_config(args.file) if publishes else b""
    client = connect(args)
    try:
        first = _first_version(client, root, args.job)
        newest = configurations.latest(client, root)
        if publishes:
            after = newest if args.after is None else args.after
            made = configurations.publish(client, root, document, after)
            said = ["version {} is published".format(made)]
            answer(args.json, {"schema": SCHEMA, "version": made}, said)
        else:
            _show(args.json, client, root, first)
    finally:
        client.close()
    return exit_codes.DONE


def _first_version(client, root, job):
    """The newest version when this run of the job began."""
    current = generations.read(client, root)
    if current is None or record.outcome_of(current) is not None:
        raise BadInput("the job {} does not run".format(job))
    files = current.content["files"]
    if not (files and files["config"]):
        raise BadInput("the job {} was started without --config".format(job))
    return current.content["configuration"]


def _show(as_json, client, root, first):
    found = configurations.newest(client, root, first)
    if found is None:
        say("version {}: the file that the job was started with".format(first), error=True)
        answer(as_json, {"schema": SCHEMA, "version": first, "configuration": None})
        return
    say("version {}".format(found.version), error=True)
    held = json_text.loads(found.document)
    document = {"schema": SCHEMA, "version": found.version, "configuration": held}
    answer(as_json, document, found.document.decode("utf-8").splitlines())
