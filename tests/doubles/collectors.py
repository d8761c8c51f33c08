"""A collector that takes OTLP on the loopback, over HTTP and over gRPC, with OpenTelemetry's own
messages.
"""

import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

__all__ = ["Collector", "GrpcCollector"]


class Received:
    """What a collector was sent."""

    def __init__(self):
        self.requests = []  # the path, the headers in lower case, and the message
        self.has_some = threading.Event()
        self.may_answer = threading.Event()  # cleared: it takes what it is sent, and says nothing
        self.may_answer.set()
        self.status = 200

    def take(self, path, headers, body):
        self.requests.append(
            (
                path,
                {key.lower(): value for key, value in headers},
                ExportTraceServiceRequest.FromString(body),
            )
        )
        self.has_some.set()
        self.may_answer.wait(30)

    def spans(self):
        """All spans, as name and attributes."""
        found = {}
        for _, _, message in self.requests:
            for resource in message.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        found.setdefault(span.name, []).append(
                            {one.key: _value(one.value) for one in span.attributes}
                        )
        return found

    def resource(self):
        """What the first message says of the program."""
        return {
            one.key: _value(one.value)
            for one in self.requests[0][2].resource_spans[0].resource.attributes
        }


def _value(value):
    return getattr(value, value.WhichOneof("value"))


class Collector(Received):
    """Over HTTP."""

    def __enter__(self):
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                received.take(self.path, self.headers.items(), body)
                answer = ExportTraceServiceResponse().SerializeToString()
                try:
                    self.send_response(received.status)
                    self.send_header("content-type", "application/x-protobuf")
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass  # whoever asked has gone away

            def log_message(self, *args):
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="collector"
        )
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcCollector(Received):
    """Over gRPC."""

    def __enter__(self):
        received = self

        class Servicer(TraceServiceServicer):
            def Export(self, request, context):
                received.take("Export", context.invocation_metadata(), request.SerializeToString())
                return ExportTraceServiceResponse()

        self._pool = futures.ThreadPoolExecutor(2)
        self._server = grpc.server(self._pool)
        add_TraceServiceServicer_to_server(Servicer(), self._server)
        self.url = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *error):
        self.may_answer.set()
        self._server.stop(0).wait()
        self._pool.shutdown()
