"""The runner of published experiments, and the numbers they were published with."""
