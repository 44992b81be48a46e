"""What every other package runs on: compiled loops, progress, files and parallel work."""
