"""The command `understudy`, for tests: as its entry point runs it."""

from understudy.runtime.cli.main import main

if __name__ == "__main__":
    main()
