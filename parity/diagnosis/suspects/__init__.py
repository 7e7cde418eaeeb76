"""Causes of a difference: functions from a Case to a Suspect with its evidence, or None.

Settings that are merely compared are rows of one table (`settings`); every other suspect has a file
and its `suspect(case)`. A score is the share of the distance (parity.diagnosis.apart) that the
suspect would explain, on its own, as each docstring derives it; `parity.diagnosis.diagnose` weighs
them.
"""
