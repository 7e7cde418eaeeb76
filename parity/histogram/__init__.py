"""Comparing scores that were counted into histograms: any number of rows in bounded memory."""
