"""Why do the two models differ? Suspects, ranked, each with its evidence and what to do about it.

    suspect.py     what a suspect is, and the three bases that it can rest on
    case.py        what is known: the comparison, its rows, facts about each side's model
    apart.py       the yardstick: how far apart the scores are, and which share a part of it has
    facts.py       what a model's checkpoint or a file of settings says of how it was trained
    suspects/      one file a suspect: a function from a Case to a Suspect, or None
    ranking.py     asks them all and ranks what they say
    diagnose.py    `parity.diagnose`: from columns and paths to a comparison with its diagnosis
    words.py       the first suspects in words

Nothing here imports a framework; `migrate` is imported when the path of a model is given.
"""
