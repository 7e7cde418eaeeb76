"""A job's status, as the tests show it."""


def training(**changed):
    """What a chief says."""
    said = {
        "at": 1000.0,
        "global_step": 12345,
        "steps_per_second": 3.25,
        "batches_per_second": 104.0,
        "batches_per_step": 32,
        "pending": 7,
        "workers": {"worker 0": 0.2, "worker 1": 31.0},
        "fates": {"admitted": 900, "stale": 100},
        "staleness": {"0": 500, "1": 300, "3": 150, "20": 50},
    }
    return dict(said, **changed)


def cluster(**changed):
    """What the launchers know."""
    known = {
        "leader": "worker 0",
        "epoch": 3,
        "generation": 2,
        "members": {"ps 0": "ps-a.example", "worker 0": "worker-a.example"},
        "waiting_for": ["worker 1"],
        "outcome": None,
    }
    return dict(known, **changed)


def document(**changed):
    """All of it."""
    whole = {
        "schema": 1,
        "job": "ctr-7",
        "at": 1004.0,
        "cluster": cluster(),
        "training": training(),
    }
    return dict(whole, **changed)
