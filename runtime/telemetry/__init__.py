"""What looks on at runs from inside: spans, measures, and the lines about starts and ends in the log.

Owns: whether something looks on, which is asked once for each run, and what is then done at each of its steps. A run at which nothing looks on has no
`RunWatch`.
Its files, each importing only from those above it:

    content         what was said, in the form of the conventions for generative AI
    meters          the measures, as a protocol, and OpenTelemetry's instruments for them
    opening         an open span, and what is set back when it is closed
    watch           one run: its spans, measures and lines
    model_calls     one call of a model, looked at
    failures        what the log says of a run that has failed
    switch          whether anything looks on

It must never import OpenTelemetry before the program has, never change what a run does, and never let what it calls end a run.
"""

__all__: list[str] = []
