"""Looking at runs and agents from outside.

Owns the forms in which they are shown. Its files, each importing only from those above it:

    event_json      an event as JSON, and the schema of that
    sse             a run as server-sent events, for a browser
    otlp_targets    where spans are sent, as the environment says it
    otlp_pipe       OpenTelemetry's parts that carry them
    otlp_export     what sets that up, and its handle
    prometheus      the measures of one system, for Prometheus to fetch
    svg             the parts of a drawing
    shapes          what a picture of agents is made of
    graph_text      such a picture as lines of text
    graph_mermaid   as a flowchart
    graph_svg       as a drawing
    graph           reading it from definitions
    timeline_values what a picture over time is made of
    timeline_reading  working it out from events
    timeline_axis   where a time stands
    timeline_text   such a picture as lines of text
    timeline_svg    as a drawing
    timeline_html   as a page
    timeline        of a run, of a result, of what a store has
    result_html     a result in a notebook

It must never change a run, nor be imported by what runs.
"""

from .event_json import EVENT_SCHEMA, event_json
from .graph import Graph, graph
from .otlp_export import Tracing, tracing_from_env
from .prometheus import prometheus_app
from .sse import sse
from .timeline import Timeline, timeline

__all__ = ["EVENT_SCHEMA", "Graph", "Timeline", "Tracing", "event_json", "graph", "prometheus_app", "sse", "timeline", "tracing_from_env"]
