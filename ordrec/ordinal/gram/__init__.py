"""Gram matrices, whole or by a factor, and the linear systems that the solvers need of them."""
