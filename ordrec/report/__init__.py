"""Results for people: tables on the terminal, figures and html pages."""
