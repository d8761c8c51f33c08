"""The parts of the benchmark `realtime`, each importing only from those above it.

    server       the server, in a process of its own: it puts its clock into each chunk of audio,
                 and says when it sent and received what
    contenders   a connection of each: a bare loop, the typed loop of the `openai` package, offbook,
                 the SDK
    measures     what all of them are asked, and what offbook alone is
    worker       a contender, or a question to offbook, in a process of its own
    page         the table, and the budgets

It must never hold a figure that was not measured in the run.
"""
