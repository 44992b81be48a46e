"""Lists: arrays of scores in, frames of recommendations out."""
