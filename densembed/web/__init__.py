"""What runs in the browser: ES modules for the pages of the app and for static sites."""
