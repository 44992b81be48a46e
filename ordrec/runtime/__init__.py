"""What every other room runs on: compiled loops, progress, files and parallel work."""
