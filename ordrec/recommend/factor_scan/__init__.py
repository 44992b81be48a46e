"""`OrdinalFactors` fitted to ratings on disk, block after block of users."""
