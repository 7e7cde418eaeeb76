"""Why do the two models differ? Suspects, ranked, each with its evidence and remedy.

    case.py            the evidence: the comparison, its rows, facts about each side's model
    apart.py           the yardstick: how far apart the scores are, and which rows have what share
    facts.py           the known facts of a model's training
    suspects/          the questions to a Case: `settings` as a table, the others one per file
    diagnose.py        `parity.diagnose`: from columns and paths to a comparison with its diagnosis;
                       asks for all suspects and ranks them

Nothing here reads a model: `migrate.read_facts` does.
"""
