"""Calls of `semisync train` on the job of `write_job`."""

from semisync.cli import main


def arguments(job, clicks, out, *more):
    given = ["train", str(job / "clicks.ckpt"), "--data", str(clicks), "--label", "clicked"]
    given += ["--day", "day", "--batch-size", "256", "--epochs", "2", "--shuffle", "500"]
    return [*given, "--eval-data", str(clicks), "--out", str(out), "--report-every", "8", *more]


def refusal(arguments, capsys):
    assert main(arguments) == 3
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "Traceback" not in message
    return message
