"""The posterior of the process: solvers on arrays."""
