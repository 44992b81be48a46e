"""Metrics of ratings, distributions and rankings, pooled or averaged over users."""
