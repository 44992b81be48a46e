"""A fitted model behind a page and a JSON API, for one machine: see `make_app`."""
