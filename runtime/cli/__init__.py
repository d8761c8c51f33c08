"""The command `understudy`. Needs the extra `cli`.

    loading     an agent from a file or a module
    stores      a store by its address
    serving     `understudy serve`: what it checks, and the server
    mcp_serving the same with `--mcp`: an agent as a tool
    commands    the subcommands and their options
    main        the entry point: errors become one line

It must never be imported by anything else, and typer only when a command runs.
"""
