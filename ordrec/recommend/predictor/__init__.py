"""The rating predictor: the joint process under personal thresholds."""
