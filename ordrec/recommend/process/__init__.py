"""The joint Gaussian process over users and items: arrays in, arrays out."""
