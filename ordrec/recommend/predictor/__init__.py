"""RatingPredictor: the Gaussian process pooled with ordinal factors."""
