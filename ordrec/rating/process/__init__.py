"""`ProcessPredictor`: the joint Gaussian process as a rating model."""
