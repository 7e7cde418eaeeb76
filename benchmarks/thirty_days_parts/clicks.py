"""A log of clicks on films whose users and films come and go, by a model that is known.

1. Users and films have raw ids, 62 random bits. A third of them is there on the first day; the
   others come on any day, and all stay for a while: LIFE days on average, users and films alike.
2. Some users are more active than others, some films more popular. A film has one to three of
   GENRES genres.
3. Whether a user clicks is drawn by the logistic of a sum: a constant, what the user and the film
   are worth by themselves, the product of their tastes, the user's liking of the film's genres.
4. A row also has the last BEFORE films that the user clicked on.

So of the rows from day 15 on most are of ids that day 14 does not know.
"""

import os

import numpy as np

from benchmarks.thirty_days_parts import data

DEFAULT = None  # it is made
FEATURES = ["user", "film"]
LISTS = ("genres", "before")
USERS, FILMS, GENRES, BEFORE = 12_000, 4_000, 18, 5
LIFE = 8.0
DIM = 4  # of the tastes


def prepare(_, folder, plan):
    """Draws the log, once for all seeds."""
    os.makedirs(folder)
    random = np.random.RandomState(2026)
    users, films = Kind(random, USERS, plan.days, 1.0), Kind(random, FILMS, plan.days, 1.2)
    genres = random.randint(1, GENRES + 1, (FILMS, 3)) * (random.rand(FILMS, 3) < (1, 0.6, 0.3))
    liking = random.normal(0, 0.4, (USERS, GENRES + 1)) * (np.arange(GENRES + 1) > 0)
    clicked = np.zeros((USERS, BEFORE), np.int64)
    count = plan.global_batch * plan.most
    for day in range(plan.days):
        user, film = users.drawn(random, day, count), films.drawn(random, day, count)
        logit = users.worth[user] + films.worth[film] - 0.8
        logit += (users.taste[user] * films.taste[film]).sum(1)
        logit += liking[user[:, None], genres[film]].sum(1) / (genres[film] > 0).sum(1)
        label = random.rand(count) < 1 / (1 + np.exp(-logit))
        np.savez(
            data.name(folder, day, "npz"),
            user=users.ids[user],
            film=films.ids[film],
            genres=genres[film],
            before=_before(clicked, user, films.ids[film], label),
            label=label.astype(np.int8),
            key=count * day + np.arange(count),
        )


def days(folder, plan):
    """Each day's columns, in the order of the log."""
    return (data.read(folder, day) for day in range(plan.days))


def user(ids):
    """Users as a file of raw rows has them."""
    return ids


class Kind:
    """Users or films.

    Attributes:
        ids: int64 [count].
        worth: what each adds to the logit by itself [count].
        taste: [count, DIM].
    """

    def __init__(self, random, count, days, spread):
        # Twice as many as needed are drawn, in case some are equal; shuffled, since unique sorts.
        self.ids = np.unique(random.randint(1, 2**62, 2 * count))[:count]
        random.shuffle(self.ids)
        self.worth, self.taste = random.normal(0, 0.9, count), random.normal(0, 0.4, (count, DIM))
        self._weight = np.exp(random.normal(0, spread, count))
        self._first = np.where(np.arange(count) < count // 3, -1, random.randint(0, days, count))
        self._last = self._first + random.exponential(LIFE, count)

    def drawn(self, random, day, count):
        """Draws the user or film of each of a day's rows, by its number."""
        weight = self._weight * ((self._first <= day) & (day <= self._last))
        return random.choice(len(weight), count, p=weight / weight.sum())


def _before(clicked, user, film, label):
    """The films that each row's user clicked before, [rows, BEFORE]; updates `clicked`, by user."""
    found = np.empty((len(user), BEFORE), np.int64)
    for row, (who, what, did) in enumerate(zip(user, film, label)):
        found[row] = clicked[who]
        if did:
            clicked[who, 1:], clicked[who, 0] = clicked[who, :-1].copy(), what
    return found
