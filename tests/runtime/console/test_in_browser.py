"""The console in a real Chromium, clicked as a person would: each page, the keys, a phone's width,
and what must never run as a script.
"""

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import ActorSystem, AgentEvent, Message, MessageDelta, ToolCall
from offbook.runtime.console import console_app
from tests.doubles.browser import Browser
from tests.doubles.console import TOKEN, list_many, refund, runner_of

pytestmark = pytest.mark.slow

SCRIPT = "<script>window.bad=1</script><img src=x onerror='window.bad=2'><b>bold</b>"


@contextlib.asynccontextmanager
async def served(runner, *, capture_content=False, **how):
    """The console of a Runner, on a real server, and a page that shows it."""
    app = console_app(runner, auth=TOKEN, capture_content=capture_content)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.install_signal_handlers = lambda: None
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        try:
            phone = how.pop("phone", False)
            async with Browser(**how) as browser:
                page = await browser.open(
                    f"http://127.0.0.1:{listening.getsockname()[1]}/#token={TOKEN}", phone=phone
                )
                try:
                    yield page
                finally:
                    await page.close()
        finally:
            await app.aclose()
            server.should_exit = True
            await serving


@tool
def ask_colour(context: ToolContext) -> str:
    """Ask which colour."""
    return f"the colour is {context.interrupt('Which colour?')}"


class Clerk:
    """A model that does what the last message says."""

    async def generate(self, request):
        last = request.messages[-1]
        if last.role == "tool":
            return Message.assistant(f"Then: {last.text}")
        for word, name, arguments in (
            ("refund", "refund", '{"order": "A-7", "amount": 12}'),
            ("colour", "ask_colour", "{}"),
        ):
            if word in last.text:
                return Message.assistant("", tool_calls=(ToolCall("c1", name, arguments),))
        system = next(
            (message.text for message in request.messages if message.role == "system"), ""
        )
        return Message.assistant(f"{system} You said: {last.text}")

    async def stream(self, request):
        reply = await self.generate(request)
        for word in reply.text.split(" "):
            yield MessageDelta(content=word + " ")
        yield reply


def clerk(**options):
    return ChatModelAgent(
        name="Clerk", instruction="Be kind.", model=Clerk(), tools=[refund, ask_colour], **options
    )


def test_approvals_are_answered_and_the_run_is_seen_to_its_end(run):
    async def main():
        async with ActorSystem("shop") as system:
            runner = runner_of(clerk(), system=system)
            for number in range(3):
                await runner.query(
                    "I want a refund" if number else "which colour?", run_id=f"r{number}"
                )
            async with served(runner) as page:
                await page.sees("shop (running)")
                await page.sees("waiting for: refund")
                await page.click("Waiting", "nav")
                await page.sees("3 waiting")
                await page.fill("Your name, recorded with your answers", "Ada")
                await page.fill("Answer", "red")
                await page.click("Answer", "[data-interrupt]")
                await page.sees("2 waiting")
                # With the keys: the first card is focused, and denied.
                await page.js("document.activeElement.blur()")
                await page.press("j")
                await page.press("d")
                await page.sees("1 waiting")
                await page.fill("Arguments of the call", '{"order": "B-9", "amount": 3}')
                await page.click("Approve with these arguments", "[data-interrupt]")
                await page.sees("No runs wait for an answer.")
                shown = {}
                for name in ("r0", "r1", "r2"):
                    await page.js(f"location.hash = '#/run/{name}'")
                    await page.until(
                        "document.querySelector('.status.completed') && document.title.startsWith("
                        + repr(name)
                        + ")"
                    )
                    await page.sees("Then: ")
                    shown[name] = await page.text("main")
                # Back to where it waited, with another answer: that is a run of its own.
                await page.js("location.hash = '#/run/r1?view=timeline'")
                await page.until("document.querySelector('svg .part.waits')")
                await page.click("Resume", "main .list")
                await page.sees("Resume from r1@1")
                await page.click("Deny", "[data-interrupt]")
                await page.until(
                    "document.querySelector('.status.completed') && "
                    "location.hash.startsWith('#/run/') && !location.hash.includes('r1')"
                )
                await page.sees("was denied")
                return shown, page.problems

    shown, problems = run(main())
    assert problems == []
    assert "the colour is red" in shown["r0"]
    assert "Ada answered" in shown["r0"].replace("\n", " ")
    both = shown["r1"] + shown["r2"]
    assert "was denied" in both
    assert "3 for B-9" in both
    assert "Ada approved with other arguments" in both.replace("\n", " ")


def test_a_session_and_a_try_are_streamed_and_two_runs_stand_side_by_side(run):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(clerk(), system=system)
            async with served(runner) as page:
                await page.press("4")
                await page.fill("Session id", "ada")
                await page.click("Open", "main")
                await page.fill("type a message", "good morning")
                await page.press("Enter", "\r")
                await page.until("document.querySelector('.status.completed')")
                await page.sees("You said: good morning")
                history = [message.text for message in await runner.session("ada").history()]
                await page.press("Escape")
                await page.press("5")
                await page.fill("message Clerk", "what is new?")
                await page.click("Send", "main")
                await page.until("document.querySelector('.status.completed')")
                await page.click("Instruction, for the next run only")
                await page.fill("Instruction for the next run only", "Be rude.")
                await page.click("Same input again")
                await page.until(
                    "document.querySelectorAll('#attempts .status.completed').length === 2"
                )
                await page.sees("Be rude. You said")
                sides = await page.js(
                    "[...document.querySelectorAll('#attempts > section')].filter((one) => "
                    "!one.hidden).map((one) => [one.querySelector('.transcript').innerText, "
                    "one.getBoundingClientRect().x])"
                )
                foreign = [
                    address for address in page.asked if not address.startswith("http://127.0.0.1:")
                ]
                return history, sides, foreign, runner.agent.instruction, page.problems

    history, sides, foreign, instruction, problems = run(main())
    assert history == ["good morning", "Be kind. You said: good morning"]
    assert "Be kind. You said: what is new?" in sides[0][0]
    assert "Be rude. You said: what is new?" in sides[1][0]
    assert sides[0][1] < sides[1][1]
    assert (foreign, instruction, problems) == ([], "Be kind.", [])


class Lengthy:
    """A model whose replies are many lines, which come one by one."""

    def __init__(self):
        self.count = 0

    async def generate(self, request):
        self.count += 1
        return Message.assistant(
            "\n".join(f"line {number} of reply {self.count}" for number in range(30))
            + f"\nthe end of reply {self.count}"
        )

    async def stream(self, request):
        reply = await self.generate(request)
        for line in reply.text.splitlines(keepends=True):
            yield MessageDelta(content=line)
        yield reply


IN_VIEW = """(() => {
    const words = [...document.querySelectorAll('.transcript .bubble .text')].at(-1), box = document.querySelector('.transcript').getBoundingClientRect();
    const end = words.getBoundingClientRect().bottom;
    return words.innerText.endsWith('the end of reply ' + %d) && end <= box.bottom + 2 && end > box.top && end <= innerHeight;
})()"""


@pytest.mark.parametrize("phone", [False, True])
def test_the_page_of_a_session_scrolls_to_the_reply_until_its_reader_scrolls_up(run, phone):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(ChatModelAgent(name="Clerk", model=Lengthy()), system=system)
            for _ in range(15):
                await runner.session("ada").query("more")
            async with served(runner, phone=phone) as page:
                await page.js("location.hash = '#/session/ada'")
                await page.until(IN_VIEW % 15)
                for number in (16, 17):
                    # What a reader writes shows the end again.
                    await page.js("document.querySelector('.transcript').scrollTop = 0")
                    await page.fill("type a message", "more")
                    await page.press("Enter", "\r")
                    await page.until(IN_VIEW % number)
                await page.js("document.querySelector('.transcript').scrollTop -= 500")
                await page.js(
                    "new Promise((done) => requestAnimationFrame(() => "
                    "requestAnimationFrame(done)))"
                )
                shown = await page.js(IN_VIEW % 17)
                return (
                    shown,
                    await page.js(
                        "[...new Set([...document.querySelectorAll('.transcript "
                        "header')].map((one) => one.textContent))]"
                    ),
                    page.problems,
                )

    assert run(main()) == (False, ["user", "Clerk"], [])


class Hostile(Agent):
    """An agent all of whose words are scripts."""

    async def run(self, input, context):
        context.session[SCRIPT] = SCRIPT
        yield AgentEvent.of(custom_output={SCRIPT: SCRIPT})
        yield AgentEvent.of(
            message=Message.assistant(
                SCRIPT, tool_calls=(ToolCall("c", SCRIPT, f'{{"a": "{SCRIPT}"}}'),)
            )
        )
        yield AgentEvent.of(message=Message.tool(SCRIPT, call_id="c", name=SCRIPT))
        raise ValueError(SCRIPT)


def test_a_message_that_is_a_script_is_shown_as_text(run):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(Hostile(name="<i>Hostile</i>", description=SCRIPT), system=system)
            await runner.session(SCRIPT).query(SCRIPT, run_id="r", labels={"x": SCRIPT})
            async with served(runner) as page:
                await page.sees("<i>Hostile</i>")
                seen = {}
                for place in (
                    "#/runs",
                    "#/sessions",
                    "#/run/r",
                    "#/run/r?view=events",
                    "#/run/r?view=values",
                    "#/run/r?view=steps",
                    "#/run/r?view=timeline",
                    "#/session/" + "%3Cscript%3E",
                ):
                    await page.js(f"location.hash = '{place}'")
                    await page.until(
                        "!document.body.innerText.includes('Loading…') && "
                        "document.querySelector('main h1, main .panel')"
                    )
                    if "session/" not in place:
                        await page.until(
                            "document.querySelector('main').textContent.includes('<script>') "
                            "|| "
                            "document.querySelector('main').textContent.includes('<i>Hostile')"
                        )
                    seen[place] = await page.text("main")
                broken = await page.js(
                    "[window.bad ?? null, document.querySelectorAll('main script, main img, "
                    "main b > b, main i:not(.part)').length]"
                )
                refused = await page.js(
                    "(() => { try { document.body.innerHTML = '<p>x</p>'; return 'made'; } "
                    "catch (error) { return error.name; } })()"
                )
                return seen, broken, refused

    seen, broken, refused = run(main())
    assert broken == [None, 0]
    assert refused == "TypeError"  # the browser itself lets no text become HTML
    assert SCRIPT in seen["#/run/r"]
    assert SCRIPT in seen["#/sessions"] or SCRIPT[:27] in seen["#/sessions"]


class Flood(Agent):
    """Says a thousand things, again and again, until it is cancelled."""

    def __init__(self):
        super().__init__(name="Flood")

    async def run(self, input, context):
        number = 0
        while True:
            for _ in range(50):
                number += 1
                yield AgentEvent.say(f"number {number} " + "of many words " * 5)
            await asyncio.sleep(0.05)


async def turn_pages(page):
    """Look at the list of runs, three pages of it."""
    await page.click("Runs", "nav")
    for number in (100, 200, 300):
        await page.sees(f"The {number} newest.")
        await page.click("More", "main")
    await page.sees("The 400 newest.")
    await page.choose("Status", "failed")
    await page.sees("No matching runs.")


@pytest.mark.timeout(150)
def test_with_a_hundred_thousand_runs_one_of_a_thousand_events_a_second_is_followed_in_short_tasks(
    run, store_of
):
    async def main():
        async with ActorSystem() as system, store_of("sqlite") as store:
            await list_many(store, 100_000)
            runner = runner_of(Flood(), store, system=system)
            running = runner.query("q", run_id="r", detached=True)
            async with served(runner) as page:
                tasks = await page.traced(lambda: turn_pages(page))
                await page.js("location.hash = '#/run/r'")
                counted = (
                    "Number((document.querySelector('.node .count')?.textContent ?? "
                    "'0').replace(',', ''))"
                )
                await page.until(f"{counted} > 500")
                tasks += await page.traced(lambda: page.until(f"{counted} > 1500"))
                lit = await page.text(".node.lit b")
                said = await page.js("document.querySelectorAll('.said > *').length")
                await page.click("Events", "[role=tablist]")
                tasks += await page.traced(
                    lambda: page.until(
                        "Number(document.querySelector('#event-count').textContent.replace(',', "
                        "'').split(' ')[0]) > 2200"
                    )
                )
                rows = await page.js("document.querySelectorAll('.event').length")
                await page.click("Cancel", "main .head")
                await page.click("Cancel the run", "dialog")
                await page.until("document.querySelector('.status.cancelled')")
                result = await running
                return tasks, lit, said, rows, result.status, page.problems

    tasks, lit, said, rows, status, problems = run(main())
    assert (status, problems) == ("cancelled", [])
    assert lit.startswith("Flood")
    assert said <= 310
    assert rows <= 60
    assert tasks
    # Seconds of the processor in one task of the page: no frame takes longer.
    assert max(tasks) < 0.05


class Steady(Agent):
    """Says something, and waits for its gate."""

    def __init__(self, name, gate):
        super().__init__(name=name)
        self.gate = gate

    async def run(self, input, context):
        yield AgentEvent.say(f"{self.name} begins")
        await self.gate.wait()
        yield AgentEvent.say(f"{self.name} ends")


def test_all_who_are_at_work_beside_one_another_are_lit(run):
    async def main():
        gate, last = asyncio.Event(), asyncio.Event()
        lit = (
            "[...document.querySelectorAll('.node.lit b')].map((one) => "
            "one.textContent).sort().join()"
        )
        async with ActorSystem() as system:
            team = Parallel(name="Team", sub_agents=[Steady("One", gate), Steady("Two", gate)])
            runner = runner_of(
                Sequential(name="All", sub_agents=[team, Steady("Three", last)]), system=system
            )
            running = runner.query("q", run_id="r", detached=True)
            async with served(runner) as page:
                await page.js("location.hash = '#/run/r'")
                await page.until(f"{lit} === 'One,Two'")
                above = await page.js(
                    "[...document.querySelectorAll('.node.above b')].map((one) => "
                    "one.textContent).sort()"
                )
                gate.set()
                await page.until(f"{lit} === 'Three'")
                last.set()
                await page.until(f"document.querySelector('.status.completed') && {lit} === ''")
                await running
                return above, page.problems

    assert run(main()) == (["All", "Team"], [])


@pytest.mark.parametrize("capture_content", [False, True])
def test_a_run_shows_what_each_model_call_was_asked_or_how_to_capture_it(run, capture_content):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(clerk(), system=system)
            async with served(runner, capture_content=capture_content) as page:
                await runner.query(f"hello {SCRIPT}", run_id="r")
                await page.js("location.hash = '#/run/r?view=calls'")
                if not capture_content:
                    await page.sees("capture_content=True")
                    return page.problems
                await page.click("#1 Clerk")
                await page.until("document.querySelector('.modelcalls .json')")
                text = await page.text(".modelcalls")
                for words in ("Be kind.", f"hello {SCRIPT}", "refund", "Settings", "You said:"):
                    assert words in text
                return page.problems

    assert run(main()) == []


def test_on_a_phone_the_whole_timeline_can_be_reached(run):
    async def main():
        async with ActorSystem() as system:
            agents = [
                ChatModelAgent(name=f"Agent with a rather long name {number}", model=Clerk())
                for number in range(4)
            ]
            runner = runner_of(Sequential(name="All", sub_agents=agents), system=system)
            await runner.query("hello", run_id="r")
            async with served(runner, phone=True) as page:
                await page.js("location.hash = '#/run/r?view=timeline'")
                await page.until("document.querySelector('.timeline .legend')")
                outside = await page.js(
                    "[...document.querySelectorAll('.timeline, .timeline svg, .timeline "
                    "rect, .timeline text, .timeline .legend span, .timeline "
                    "p')].filter((one) => {"
                    " const { left, right } = one.getBoundingClientRect(); return left < 0 "
                    "|| right > innerWidth; }).map((one) => one.outerHTML)"
                )
                names = await page.js(
                    "[...document.querySelectorAll('.timeline .lane')].map((one) => "
                    "one.lastChild.data)"
                )
                return (
                    outside,
                    names,
                    await page.js("document.documentElement.scrollWidth"),
                    page.problems,
                )

    outside, names, width, problems = run(main())
    assert (outside, problems) == ([], [])
    assert names == [f"Agent with a rather long name {number}" for number in range(4)]
    assert width <= 390


def test_on_a_phone_in_the_dark_nothing_is_wider_than_the_screen(run, tmp_path):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(clerk(), system=system)
            await runner.session("ada").query(
                "I want a refund", run_id="a-run-with-a-rather-long-name-of-its-own"
            )
            async with served(runner, phone=True, scheme="dark") as page:
                wide, colours = {}, set()
                for place in (
                    "now",
                    "runs",
                    "answers",
                    "sessions",
                    "try",
                    "run/a-run-with-a-rather-long-name-of-its-own",
                    "run/a-run-with-a-rather-long-name-of-its-own?view=events",
                    "session/ada",
                ):
                    await page.js(f"location.hash = '#/{place}'")
                    await page.until(
                        "document.querySelector('main h1') && "
                        "!document.querySelector('main').innerText.includes('Loading…')"
                    )
                    wide[place] = await page.js("document.documentElement.scrollWidth")
                    colours.add(await page.js("getComputedStyle(document.body).backgroundColor"))
                await page.js("document.querySelector('#theme').click()")
                light = await page.js("getComputedStyle(document.body).backgroundColor")
                return wide, colours, light, page.problems

    wide, colours, light, problems = run(main())
    assert problems == []
    assert {place: width for place, width in wide.items() if width > 390} == {}
    assert len(colours) == 1
    assert light not in colours


def test_without_the_address_the_page_asks_for_the_token_and_keeps_it_out_of_every_address(run):
    async def main():
        async with ActorSystem("shop") as system, served(runner_of(clerk(), system=system)) as page:
            await page.sees("shop (running)")
            assert TOKEN not in await page.js("location.href")
            # Another host: it has no cookie.
            await page.go(await page.js("location.origin.replace('127.0.0.1', 'localhost') + '/'"))
            await page.sees("The token of this console")
            await page.fill("The token of this console", "wrong")
            await page.click("Open", "main")
            await page.sees("not the token of this console")
            await page.fill("The token of this console", TOKEN)
            await page.click("Open", "main")
            await page.sees("shop (running)")
            assert TOKEN not in await page.js("location.href")

    run(main())
