"""Observing runs and agents from outside: JSON, server-sent events, spans, metrics, diagrams.

The package changes no run, and the code that runs agents does not import it. Each module imports
only from the modules above it:

    event_json      an event as JSON, and its schema
    sse_forms       the parts of a run that a browser sees
    sse             a run as server-sent events, for a browser
    otlp_targets    the destinations of spans in the environment
    otlp_pipe       the parts of OpenTelemetry that send them
    otlp_export     the setup of the export, and its handle
    prometheus      the metrics of one system, for Prometheus to scrape
    svg             the parts of an SVG drawing
    shapes          the parts of a diagram of agents
    graph_text      the diagram as text lines
    graph_mermaid   the diagram as a Mermaid flowchart
    graph_svg       the diagram as a drawing
    graph           reading the diagram from definitions
    timeline_values the parts of a timeline
    timeline_reading  reading a timeline from events
    timeline_axis   the horizontal axis
    timeline_text   the timeline as text lines
    timeline_svg    the timeline as a drawing
    timeline_html   the timeline as a page
    timeline        the timeline of a run, a result, or a stored run
    result_html     a result in a notebook
"""

from .event_json import EVENT_SCHEMA, event_json
from .graph import Graph, graph
from .otlp_export import Tracing, tracing_from_env
from .prometheus import prometheus_app
from .sse import sse
from .timeline import Timeline, timeline

__all__ = [
    "EVENT_SCHEMA",
    "Graph",
    "Timeline",
    "Tracing",
    "event_json",
    "graph",
    "prometheus_app",
    "sse",
    "timeline",
    "tracing_from_env",
]
