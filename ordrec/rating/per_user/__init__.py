"""One ordinal model per user, as in the papers."""
