"""Files of known data sets, one module for each format."""
