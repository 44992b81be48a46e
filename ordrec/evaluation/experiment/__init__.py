"""Models on problems, fold by fold: one tidy frame and a manifest."""
