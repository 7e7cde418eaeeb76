"""The search for hyperparameters: one process, trained on days 0-20, scored on days 21-24.

    python -m benchmarks.auc_evidence_parts.search [--rates R ...] [--seeds N] [--epochs N]
        [--delays D ...] [--batches-per-step M] [--data PATH]

Trains on the exact global batch, as synchronous training does, and prints the AUC at the end of
each epoch as a Markdown table. `--batches-per-step 1` trains on the local batches one by one, like
asynchronous training without staleness. `--delays 0 1 2` shows what staleness costs.
"""

import argparse
import tempfile

from benchmarks.auc_evidence_parts import alone, data, plan
from semisync.common.compat import tf


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[plan.CHOSEN.learning_rate])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--delays", type=int, nargs="+", default=[0])
    parser.add_argument("--batches-per-step", type=int, default=plan.CHOSEN.batches_per_step)
    parser.add_argument("--data", default=data.DEFAULT)
    args = parser.parse_args()
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    settings = plan.CHOSEN._replace(epochs=args.epochs, batches_per_step=args.batches_per_step)
    epochs = ["epoch %d" % (number + 1) for number in range(args.epochs)]
    print("| learning rate | delay | seed | " + " | ".join(epochs) + " |")
    print("|---" * (3 + args.epochs) + "|")
    with tempfile.TemporaryDirectory() as folder:
        data.prepare(args.data, folder)
        answers = data.load(folder)
        for rate in args.rates:
            for delay in args.delays:
                for seed in range(1, args.seeds + 1):
                    run = {"learning_rate": rate, "seed": seed, "delay": delay}
                    print(row(run, settings, answers), flush=True)


def row(run, settings, answers):
    """One line of the table."""
    import parity

    labels = answers.labels[data.rows_of(answers, plan.SPLITS["validation"][1])]
    scores = alone.train(run, settings, answers, "validation")
    cells = [str(run[name]) for name in ("learning_rate", "delay", "seed")]
    cells += ["{:.5f}".format(parity.auc(labels, epoch)) for epoch in scores]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
