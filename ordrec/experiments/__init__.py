"""The runner of published experiments, the published numbers and the benchmark tables."""
