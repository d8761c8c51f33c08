"""The console in a real Chromium, clicked as a person would: each page, the keys, a phone's width, and what must never run as a script."""

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from tests.doubles.browser import Browser
from tests.doubles.console import TOKEN, list_many, refund, runner_of
from understudy.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from understudy.runtime import ActorSystem, AgentEvent, Message, MessageDelta, ToolCall
from understudy.runtime.console import console_app

pytestmark = pytest.mark.slow

SCRIPT = "<script>window.bad=1</script><img src=x onerror='window.bad=2'><b>bold</b>"


@contextlib.asynccontextmanager
async def served(runner, **how):
    """The console of a Runner, on a real server, and a page that shows it."""
    app = console_app(runner, auth=TOKEN)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        server.install_signal_handlers = lambda: None
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        try:
            phone = how.pop("phone", False)
            async with Browser(**how) as browser:
                page = await browser.open(f"http://127.0.0.1:{listening.getsockname()[1]}/?token={TOKEN}", phone=phone)
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
        for word, name, arguments in (("refund", "refund", '{"order": "A-7", "amount": 12}'), ("colour", "ask_colour", "{}")):
            if word in last.text:
                return Message.assistant("", tool_calls=(ToolCall("c1", name, arguments),))
        system = next((message.text for message in request.messages if message.role == "system"), "")
        return Message.assistant(f"{system} You said: {last.text}")

    async def stream(self, request):
        reply = await self.generate(request)
        for word in reply.text.split(" "):
            yield MessageDelta(content=word + " ")
        yield reply


def clerk(**options):
    return ChatModelAgent(name="Clerk", instruction="Be kind.", model=Clerk(), tools=[refund, ask_colour], **options)


def test_approvals_are_answered_and_the_run_is_seen_to_its_end(run):
    async def main():
        async with ActorSystem("shop") as system:
            runner = runner_of(clerk(), system=system)
            for number in range(3):
                await runner.query("I want a refund" if number else "which colour?", run_id=f"r{number}")
            async with served(runner) as page:
                await page.sees("shop (running)")
                await page.sees("waits: refund")
                await page.click("To be answered", "nav")
                await page.sees("3 waiting")
                await page.fill("Your name, noted with your answers", "Ada")
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
                await page.sees("Nothing waits for an answer.")
                shown = {}
                for name in ("r0", "r1", "r2"):
                    await page.js(f"location.hash = '#/run/{name}'")
                    await page.until("document.querySelector('.status.completed') && document.title.startsWith(" + repr(name) + ")")
                    await page.sees("Then: ")
                    shown[name] = await page.text("main")
                # Back to where it waited, with another answer: that is a run of its own.
                await page.js("location.hash = '#/run/r1?view=timeline'")
                await page.until("document.querySelector('svg .part.waits')")
                await page.click("Resume", "main .list")
                await page.sees("Go on from r1@1")
                await page.click("Deny", "[data-interrupt]")
                await page.until("document.querySelector('.status.completed') && location.hash.startsWith('#/run/') && !location.hash.includes('r1')")
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
                await page.fill("Id of a session", "ada")
                await page.click("Open", "main")
                await page.fill("say something", "good morning")
                await page.press("Enter", "\r")
                await page.until("document.querySelector('.status.completed')")
                await page.sees("You said: good morning")
                history = [message.text for message in await runner.session("ada").history()]
                await page.press("Escape")
                await page.press("5")
                await page.fill("say something to Clerk", "what is new?")
                await page.click("Send", "main")
                await page.until("document.querySelector('.status.completed')")
                await page.click("Instruction, in the next run only")
                await page.fill("Instruction in the next run only", "Be rude.")
                await page.click("Same input again")
                await page.until("document.querySelectorAll('#attempts .status.completed').length === 2")
                await page.sees("Be rude. You said")
                sides = await page.js(
                    "[...document.querySelectorAll('#attempts > section')].filter((one) => !one.hidden).map((one) => [one.querySelector('.transcript').innerText, one.getBoundingClientRect().x])"
                )
                foreign = [address for address in page.asked if not address.startswith("http://127.0.0.1:")]
                return history, sides, foreign, runner.agent.instruction, page.problems

    history, sides, foreign, instruction, problems = run(main())
    assert history == ["good morning", "Be kind. You said: good morning"]
    assert "Be kind. You said: what is new?" in sides[0][0]
    assert "Be rude. You said: what is new?" in sides[1][0]
    assert sides[0][1] < sides[1][1]
    assert (foreign, instruction, problems) == ([], "Be kind.", [])


class Hostile(Agent):
    """An agent all of whose words are scripts."""

    async def run(self, input, context):
        context.session[SCRIPT] = SCRIPT
        yield AgentEvent.of(custom_output={SCRIPT: SCRIPT})
        yield AgentEvent.of(message=Message.assistant(SCRIPT, tool_calls=(ToolCall("c", SCRIPT, f'{{"a": "{SCRIPT}"}}'),)))
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
                    await page.until("!document.body.innerText.includes('Loading…') && document.querySelector('main h1, main .panel')")
                    if "session/" not in place:
                        await page.until(
                            "document.querySelector('main').textContent.includes('<script>') || document.querySelector('main').textContent.includes('<i>Hostile')"
                        )
                    seen[place] = await page.text("main")
                broken = await page.js("[window.bad ?? null, document.querySelectorAll('main script, main img, main b > b, main i:not(.part)').length]")
                refused = await page.js("(() => { try { document.body.innerHTML = '<p>x</p>'; return 'made'; } catch (error) { return error.name; } })()")
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
    await page.sees("No such run.")


@pytest.mark.timeout(150)
def test_with_a_hundred_thousand_runs_one_of_a_thousand_events_a_second_is_followed_in_short_tasks(run, store_of):
    async def main():
        async with ActorSystem() as system, store_of("sqlite") as store:
            await list_many(store, 100_000)
            runner = runner_of(Flood(), store, system=system)
            running = runner.query("q", run_id="r", detached=True)
            async with served(runner) as page:
                tasks = await page.traced(lambda: turn_pages(page))
                await page.js("location.hash = '#/run/r'")
                counted = "Number((document.querySelector('.node .count')?.textContent ?? '0').replace(',', ''))"
                await page.until(f"{counted} > 500")
                tasks += await page.traced(lambda: page.until(f"{counted} > 1500"))
                lit = await page.text(".node.lit b")
                said = await page.js("document.querySelectorAll('.said > *').length")
                await page.click("Events", "[role=tablist]")
                tasks += await page.traced(
                    lambda: page.until("Number(document.querySelector('#event-count').textContent.replace(',', '').split(' ')[0]) > 2200")
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
    assert max(tasks) < 0.05  # seconds of the processor in one task of the page: no frame takes longer


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
        lit = "[...document.querySelectorAll('.node.lit b')].map((one) => one.textContent).sort().join()"
        async with ActorSystem() as system:
            team = Parallel(name="Team", sub_agents=[Steady("One", gate), Steady("Two", gate)])
            runner = runner_of(Sequential(name="All", sub_agents=[team, Steady("Three", last)]), system=system)
            running = runner.query("q", run_id="r", detached=True)
            async with served(runner) as page:
                await page.js("location.hash = '#/run/r'")
                await page.until(f"{lit} === 'One,Two'")
                above = await page.js("[...document.querySelectorAll('.node.above b')].map((one) => one.textContent).sort()")
                gate.set()
                await page.until(f"{lit} === 'Three'")
                last.set()
                await page.until(f"document.querySelector('.status.completed') && {lit} === ''")
                await running
                return above, page.problems

    assert run(main()) == (["All", "Team"], [])


def test_on_a_phone_in_the_dark_nothing_is_wider_than_the_screen(run, tmp_path):
    async def main():
        async with ActorSystem() as system:
            runner = runner_of(clerk(), system=system)
            await runner.session("ada").query("I want a refund", run_id="a-run-with-a-rather-long-name-of-its-own")
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
                    await page.until("document.querySelector('main h1') && !document.querySelector('main').innerText.includes('Loading…')")
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
