"""Ratings that do not fit in memory: partitions on disk, read in blocks."""
