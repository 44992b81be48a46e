"""Linear algebra for compiled loops and threads: LAPACK, small systems, low-rank kernels."""
