"""What runs in the browser: JavaScript modules without dependencies, such as the engine."""
