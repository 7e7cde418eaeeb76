"""Reads columns from files: Parquet, ORC, CSV, TFRecord, Delta; one data set, or two joined."""
