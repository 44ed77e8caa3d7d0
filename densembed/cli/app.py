"""The command app: the pages, by Streamlit."""

import argparse
import os
import socket
import subprocess
import sys

from densembed.cli.common import UsageError
from densembed.paths import app_folder


def check_port(port: int) -> None:
    """Raise UsageError for a port that the server could not use."""
    try:
        # As Streamlit's server asks for it.
        with socket.create_server(("", port)):
            pass
    except OSError as error:
        raise UsageError(
            f"The port {port} cannot be used: {os.strerror(error.errno or 0)}. Choose another one "
            "with --port."
        ) from error


def run(options: argparse.Namespace) -> int:
    """Serve the pages until Ctrl-C, and return the server's exit status."""
    environment = dict(os.environ)
    if options.runs:
        environment["DENSEMBED_RUNS"] = str(options.runs.absolute())
    if options.read_only:
        environment["DENSEMBED_READ_ONLY"] = "1"
    command = [sys.executable, "-m", "streamlit", "run", str(app_folder() / "app.py")]
    if options.port:
        check_port(options.port)
        command += ["--server.port", str(options.port)]
    if not options.open:
        command += ["--server.headless", "true"]
    if sys.platform != "win32":  # the server takes this process, and with it all its signals
        os.execve(sys.executable, command, environment)
    return subprocess.call(command, env=environment)
