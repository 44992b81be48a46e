"""The hierarchical ordered probit: personal thresholds over any score."""
