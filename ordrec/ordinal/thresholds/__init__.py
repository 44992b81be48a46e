"""Thresholds on a latent score: rules, probabilities and ways to fit them."""
