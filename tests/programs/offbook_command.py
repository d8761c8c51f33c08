"""The command `offbook`, for tests: as its entry point runs it."""

from offbook.runtime.cli.main import main

if __name__ == "__main__":
    main()
