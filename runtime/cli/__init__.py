"""The command `understudy`. Needs the extra `cli`.

    loading           an agent from a file or a module
    stores            a store by its address
    terminal          what is written, and how it is read there: a package
    answers           what a run waits for, asked in the terminal
    turns             one run, shown as it goes; Ctrl-C cancels it
    conversation      `understudy run`, and `resume`
    kept              `understudy runs`, `show`, `cancel`, `forget`, `retry`
    pictures          `understudy graph`, `timeline`
    demo              `understudy demo`
    doctor            `understudy doctor`
    live_stats        `understudy stats`
    console_command   `understudy console`
    serving           `understudy serve`: what it checks, and the server
    mcp_serving       the same with `--mcp`: an agent as a tool
    guarded           errors become one line, and exit codes
    store_commands    the subcommands that are about a store, and their options
    service_commands  those that are about a machine or a service
    commands          the others, and all of them together
    main              the entry point

It must never be imported by anything else, and typer only when a command runs.
"""
