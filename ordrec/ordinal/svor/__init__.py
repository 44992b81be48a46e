"""Support vector ordinal regression of Chu and Keerthi: SVORIM, SVOREX, SVORSLA."""
