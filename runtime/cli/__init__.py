"""The command `offbook`. Needs the extra `cli`.

    loading           loads an agent from a file or a module
    stores            opens a store by its address
    terminal          a package: terminal output
    answers           asks for answers to interrupts
    turns             shows one run as it happens; Ctrl-C cancels it
    conversation      `offbook run`, and `resume`
    kept              `offbook runs`, `show`, `cancel`, `forget`, `retry`
    posting           `offbook post`, `schedules`
    copies            `offbook hold`, `release`, `backup`, `export`, `import`
    pictures          `offbook graph`, `timeline`
    demo              `offbook demo`
    doctor            `offbook doctor`
    live_stats        `offbook stats`
    console_command   `offbook console`
    serving           `offbook serve`: the checks, and the server
    guarded           one-line errors, and exit codes
    store_commands    the subcommands for a store, and their options
    service_commands  the subcommands for a machine or a service
    commands          the other subcommands, and the app
    main              the entry point

Nothing else imports this package, and typer is imported only when a command runs.
"""
