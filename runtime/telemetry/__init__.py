"""Observing runs from inside: spans, metrics, and log records about starts and ends.

Each run checks once if anything observes it; an unobserved run has no `RunTelemetry`. The package
never imports OpenTelemetry before the program does, never changes a run, and no error of an
observer ends a run. Each module imports only from the modules above it:

    content         messages in the form of the semantic conventions for generative AI
    meters          the metrics, as a protocol, and OpenTelemetry's instruments for them
    opening         an open span, and the cleanup when it is closed
    run_telemetry  the spans, metrics and log records of one run
    model_calls     one observed model call
    failures        the log record of a failed run
    switch          the check if anything observes a run
"""

__all__: list[str] = []
