"""The recommender: what people pick, ordered by what they will think of it."""
