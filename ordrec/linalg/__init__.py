"""Linear algebra for compiled loops and threads: the bridge to LAPACK, and small systems."""
