"""The statistics: exact AUC, DeLong's variance, equivalence, strata, trend, calibration."""
