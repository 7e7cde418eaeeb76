"""`parity.plot` returns matplotlib figures that a notebook can show, change and save."""

import dataclasses
import subprocess
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import parity
from parity import plot
from parity.stats.strata import Part
from semisync.common.errors import MissingExtra, UsageError
from tests.parity import kinds

DRAWN = {
    "interval": "plain",
    "roc": "logits",
    "reliability": "weights",
    "scores": "histograms",
    "differences": "plain",
    "runs": "runs",
    "days": "days",
    "slices": "slices",
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.few(4)
def test_each_is_a_figure_that_shows_itself(name, tmp_path):
    figure = getattr(plot, name)(kinds.comparison(DRAWN[name]))
    assert isinstance(figure, Figure)
    root = ElementTree.fromstring(figure._repr_svg_())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    figure.axes[0].set_title("Mine")
    assert ">Mine</text>" in figure._repr_svg_()
    figure.savefig(tmp_path / "figure.png")


def test_the_interval_lies_where_it_is():
    found = kinds.comparison("plain")
    axes = plot.interval(found).axes[0]
    spans = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert any(tuple(ends) == tuple(found.interval) for ends in spans)
    left, right = axes.get_xlim()
    assert left < min(-found.margin, found.interval.low)
    assert right > max(found.margin, found.interval.high)


def test_each_day_is_drawn_and_the_slope_is_the_one_tested():
    days = kinds.comparison("days").days
    axes = plot.days(kinds.comparison("days")).axes[0]
    points, slope = (
        next(line for line in axes.lines if line.get_label() == label)
        for label in ("a day, with interval", "drift")
    )
    assert list(points.get_ydata()) == [day.delta for day in days.days]
    ends = slope.get_ydata()
    assert (ends[1] - ends[0]) / 6 == pytest.approx(days.slope)


def test_slices_are_sorted_by_how_surely_they_differ():
    axes = plot.slices(kinds.comparison("slices"), "os").axes[0]
    parts = [part for part in dict(kinds.comparison("slices").slices)["os"] if part.p is not None]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [part.name for part in sorted(parts, key=lambda part: part.p)]


def test_scores_of_either_model_are_on_their_axis():
    image = plot.scores(kinds.comparison("plain")).axes[0].images[0]
    joint = kinds.comparison("plain").score_difference.joint
    assert np.array_equal(image.get_array().filled(0), joint.counts.T)


@pytest.mark.parametrize("name", ["runs", "days", "slices", "reliability"])
def test_what_a_comparison_lacks_is_not_drawn(name):
    with pytest.raises(UsageError, match="this comparison has no .*; they come from"):
        getattr(plot, name)(kinds.comparison("logits"))


def test_slices_that_are_not_there_are_named():
    with pytest.raises(UsageError, match="no slices 'country'; there are: os"):
        plot.slices(kinds.comparison("slices"), "country")


def test_names_in_any_script_or_with_dollars_are_drawn_as_they_are():
    figures = (0.5, 0.6, 0.1, 0.1, (0, 0.2), parity.Verdict.INCONCLUSIVE, 1, 1)
    part = Part("日本 $x^2$", 9, 3, *figures)
    found = dataclasses.replace(kinds.comparison("slices"), slices=(("x", (part,)),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ">日本 $x^2$</text>" in plot.slices(found)._repr_svg_()


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"'matplotlib'.*pip install '.*\[report\]'"):
        parity.write_report(kinds.comparison("plain"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_drawing_leaves_pyplot_alone():
    code = (
        "import sys; from tests.parity import kinds; from parity import plot; "
        "plot.roc(kinds.comparison('plain')); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
