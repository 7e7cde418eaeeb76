"""Sides that are measured in turns, so that what else the machine does meets them alike."""


def turns(sides, repeats, uncounted=0):
    """Calls each of {name: function} once a turn; returns {name: its results, by turn}.

    Every other turn has the sides in the opposite order. The first `uncounted` turns compile and
    fill caches.
    """
    found = {name: [] for name in sides}
    for turn in range(uncounted + repeats):
        for name in list(sides)[:: (-1) ** turn]:
            figure = sides[name]()
            if turn >= uncounted:
                found[name].append(figure)
    return found


def ratios(above, below):
    """The ratio within each turn."""
    return [one / other for one, other in zip(above, below)]
