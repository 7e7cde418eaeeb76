"""From files to columns: Parquet, ORC, CSV, TFRecord, Delta; one data set, or two joined by key."""
