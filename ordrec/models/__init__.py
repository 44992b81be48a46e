"""What all models of ratings share: ids, scale, parameters and protocols."""
