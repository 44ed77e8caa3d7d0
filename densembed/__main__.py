"""The program: `densembed`, or `python -m densembed`."""

import sys


def main() -> int:
    """Run the command line; returns the exit status."""
    try:
        from densembed.interrupt import postponed  # Ctrl-C may come while this is imported

        with postponed():  # pydantic panics
            from densembed.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("densembed: Interrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
