"""One suspect a file: `suspect(case)` returns it with its evidence, or None.

A score is the share of the distance (parity.diagnosis.apart) that the suspect would explain, on its
own, as each file's docstring derives it; `parity.diagnosis.ranking` weighs them.
"""
