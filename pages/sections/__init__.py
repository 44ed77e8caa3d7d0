"""What the Paper page shows, one section a module: each has `show()`, which draws it whole."""
