"""The options of the benchmarks that train a cluster on the interactions."""

import os
import sys

from benchmarks.auc_evidence_parts import data, plan


def declare(parser):
    """Declares them."""
    add = parser.add_argument
    add("--seeds", type=int, default=5)
    add("--python", default=sys.executable, help="interpreter of the cluster")
    add("--data", default=data.DEFAULT, help="interactions.parquet")
    add("--set", nargs="*", default=[], metavar="NAME=VALUE", help="another value in the settings")


def settings(parser, args, chosen=plan.CHOSEN):
    """The settings, those of --set changed; ends the program where there are no data."""
    if not os.path.isfile(args.data):
        parser.error("{} is not there: pass --data interactions.parquet".format(args.data))
    try:
        return plan.changed(args.set, chosen)
    except ValueError as error:
        parser.error(str(error))
