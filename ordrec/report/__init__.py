"""Results for people: tables on the terminal."""
