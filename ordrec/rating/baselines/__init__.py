"""Baseline rating models: means, histograms, biases and item neighbours."""
