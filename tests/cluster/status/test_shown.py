"""A person and Prometheus are told the same of a job."""

import re

import pytest

from semisync.cluster.status.metrics import metrics
from semisync.cluster.status.text import lines
from tests.cluster.status.documents import cluster, document, training

pytestmark = pytest.mark.one_tensorflow


def test_plain_lines_tell_all_of_it():
    assert lines(document()) == [
        "job ctr-7",
        "leader      worker 0, epoch 3",
        "generation  2",
        "members     ps 0 (ps-a.example), worker 0 (worker-a.example)",
        "waiting for worker 1",
        "global step 12,345",
        "pace        3.2 global steps/s, 104.0 batches/s, 32 batches per step",
        "batches     admitted 900, stale 100",
        "workers     2; silent: worker 1 (31 s)",
        "staleness    0   50.0 %  ###############",
        "staleness    1   30.0 %  #########",
        "staleness    3   15.0 %  ####",
        "staleness  16+    5.0 %  ##",
    ]


def test_what_is_not_known_and_what_is_old_is_said():
    nothing = training(global_step=None, steps_per_second=None, batches_per_second=None)
    nothing = dict(nothing, fates={}, staleness={}, workers={})
    shown = "\n".join(lines(document(cluster=None, training=nothing)))
    assert "global step -" in shown
    assert "pace        - global steps/s" in shown
    assert "leader" not in shown
    assert "the chief has said nothing for 60 s" in "\n".join(lines(document(at=1060.0)))
    assert "nothing so far" in lines(document(training=None))[-1]
    ended = cluster(outcome="the command has ended (exit code 0)", leader=None, waiting_for=[])
    assert "ended       the command has ended (exit code 0)" in lines(document(cluster=ended))


# The grammar of the text exposition format 0.0.4, prometheus.io/docs/instrumenting.
_LABELS = r'\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\}'
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(%s) (-?[0-9.]+(?:e[+-]?\d+)?)" % _LABELS)


def families(text):
    """{name: (type, {labels: value})}; AssertionError where a line is not of the format."""
    found = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ")[2]
            assert current not in found, "a family in two pieces"
            found[current] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current
            found[name] = (kind, {})
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match.group(1) in {current + end for end in ("", "_bucket", "_sum", "_count")}
            key = match.group(1)[len(current) :] + match.group(2)
            assert key not in found[current][1], "a sample that comes twice"
            found[current][1][key] = float(match.group(3))
    return found


def test_prometheus_reads_every_line_and_the_histogram_adds_up():
    found = families(metrics(document()))
    job = 'job_id="ctr-7"'
    assert found["semisync_global_step"] == ("gauge", {"{" + job + "}": 12345.0})
    assert found["semisync_batches_total"] == (
        "counter",
        {"{" + job + ',fate="admitted"}': 900.0, "{" + job + ',fate="stale"}': 100.0},
    )
    kind, samples = found["semisync_batch_staleness"]
    assert kind == "histogram"
    buckets = [value for key, value in samples.items() if key.startswith("_bucket")]
    assert buckets == [500, 800, 800, 950, 950, 950, 1000, 1000, 1000]
    assert samples["_count{" + job + "}"] == buckets[-1] == 1000
    assert samples["_sum{" + job + "}"] == 300 + 3 * 150 + 20 * 50
    assert found["semisync_waiting_for"][1]["{" + job + "}"] == 1
    assert found["semisync_report_age_seconds"][1]["{" + job + "}"] == 4


def test_a_job_of_which_little_is_known_has_fewer_metrics_and_hostile_names_stay_in_their_label():
    assert families(metrics(document(training=None))).keys() == {
        "semisync_" + name
        for name in ("leader_epoch", "generation", "members", "has_leader", "waiting_for")
    }
    nothing = training(global_step=None, steps_per_second=None, fates={'a"} 1\nb\\': 2})
    found = families(metrics(document(cluster=None, training=nothing)))
    assert "semisync_global_step" not in found
    assert list(found["semisync_batches_total"][1]) == ['{job_id="ctr-7",fate="a\\"} 1\\nb\\\\"}']
