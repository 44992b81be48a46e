"""Search the parameters of rating models on inner splits of the ratings."""
