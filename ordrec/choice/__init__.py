"""Choice models: which items a user is likely to pick."""
