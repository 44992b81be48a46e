"""Linear algebra for compiled loops: the bridge to LAPACK and small Choleskys."""
