"""Estimators as arrays and plain values, for `ordrec.storage`."""
