"""Explore and Compare, which run in the browser, and what they exchange with the server."""
