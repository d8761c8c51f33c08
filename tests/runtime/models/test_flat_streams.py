"""The CPU time of a streamed reply is proportional to its length, whatever its pieces are: a long
one does not hold up the loop that it shares with others.
"""

from time import process_time

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import OpenAIChatModel, OpenAIResponsesModel, Runner
from offbook.runtime.models.tool_call_deltas import ToolCallMerger
from tests.programs import openai_wire as wire

PIECE = "x" * 200
FEW, MANY = 1_000, 12_000


def chat_stream(kind, count):
    if kind == "text":
        pieces = [wire.chunk(content=PIECE)] * count
    elif kind == "reasoning":
        pieces = [*[wire.chunk(reasoning_content=PIECE)] * count, wire.chunk(content="done")]
    else:
        first = wire.chunk(tool_calls=[{**wire.call("f", '{"a": "'), "index": 0}])
        pieces = [
            first,
            *[wire.chunk(tool_calls=[{"index": 0, "function": {"arguments": PIECE}}])] * count,
        ]
        pieces.append(wire.chunk(tool_calls=[{"index": 0, "function": {"arguments": '"}'}}]))
    return [*pieces, wire.chunk("tool_calls" if kind == "arguments" else "stop")]


def responses_stream(kind, count):
    where = {"output_index": 0, "item_id": "i"}
    if kind == "text":
        name, item = "response.output_text.delta", wire.output_text(PIECE * count)
    elif kind == "reasoning":
        name, item = "response.reasoning_summary_text.delta", wire.output_text("done")
    else:
        name, item = (
            "response.function_call_arguments.delta",
            wire.output_call("f", '{"a": "' + PIECE * count + '"}'),
        )
    first = (
        [{"type": "response.output_item.added", **where, "item": {**item, "arguments": ""}}]
        if kind == "arguments"
        else []
    )
    return [
        *first,
        *[{"type": name, **where, "delta": PIECE}] * count,
        {"type": "response.completed", "response": wire.response(item)},
    ]


APIS = {
    "chat": (OpenAIChatModel, chat_stream),
    "responses": (OpenAIResponsesModel, responses_stream),
}


def serving(values):
    data = b"".join(map(wire.event, values)) + b"data: [DONE]\n\n"

    async def script(to):
        await to.open_stream()
        for start in range(0, len(data), 1 << 16):
            await to.chunk(data[start : start + (1 << 16)])
        await to.chunk(b"")

    return script


@pytest.mark.parametrize("kind", ["text", "reasoning", "arguments"])
@pytest.mark.parametrize("api", APIS)
def test_the_time_of_a_piece_does_not_grow_with_those_before_it(run, api, kind):
    make, stream = APIS[api]

    async def spent(count):
        """CPU seconds of one piece, in a whole run, at best."""
        best = float("inf")
        async with wire.WireServer(serving(stream(kind, count))) as server:
            model = make("m", api_key="k", base_url=server.url)
            for _ in range(3):
                agent = ChatModelAgent(name="a", model=model, max_iterations=1)
                before, pieces = process_time(), 0
                async for event in Runner(agent, streaming=True).query("go"):
                    pieces += event.delta is not None
                best = min(best, process_time() - before)
                assert pieces >= count
            await model.aclose()
        return best / count

    async def main():
        few, many = await spent(FEW), await spent(MANY)
        assert many < 3 * few, (
            f"{few * 1e6:.1f} µs each of {FEW} pieces, {many * 1e6:.1f} µs each of {MANY}"
        )

    run(main())


@pytest.mark.parametrize(
    ("index", "call_id", "name"),
    [(0, "", ""), (None, "", ""), (None, "", "f"), (None, "c1", "f"), (None, "c1", "")],
)
def test_the_same_where_a_provider_leaves_out_the_index_or_repeats_the_name(index, call_id, name):
    def spent(count):
        best = float("inf")
        for _ in range(3):
            merger = ToolCallMerger()
            merger.add(index, "c1", "f", '{"a": "')
            before = process_time()
            for _ in range(count):
                merger.add(index, call_id, name, PIECE)
            best = min(best, process_time() - before)
            assert merger.calls()[0].arguments == '{"a": "' + PIECE * count
        return best / count

    few, many = spent(FEW), spent(MANY)
    assert many < 3 * few, (
        f"{few * 1e6:.2f} µs each of {FEW} pieces, {many * 1e6:.2f} µs each of {MANY}"
    )
