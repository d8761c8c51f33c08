"""What the processes of a storm have written down, outside of every store, and whether it is what
was promised.

Owns: the reading of it, and each check. All lines bear the time of one clock. A check never says
that a promise was broken which was not: where a line may have been written later than what it tells
of, the time counts at which that began.
"""

import json
from collections import Counter, defaultdict
from itertools import pairwise

from tests.programs.storm_worker import plan

SEEN_AGAIN = 200
"""How many of the runs that have ended are asked for again when all is over."""


class Logs:
    """The lines of all workers, in the order of their times."""

    def __init__(self, folder):
        self.lines = [
            json.loads(line)
            for path in sorted(folder.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        self.lines.sort(key=lambda line: line["t"])

    def of(self, *kinds):
        return [line for line in self.lines if line["what"] in kinds]

    def by_run(self, *kinds):
        runs = defaultdict(list)
        for line in self.of(*kinds):
            runs[line["run"]].append(line)
        return runs

    def ended(self):
        return {line["run"] for line in self.of("ended")}

    def asked(self):
        return {line["run"]: line["session"] for line in self.of("asked")}

    def sessions(self):
        turns = {session for session in self.asked().values() if session is not None}
        return sorted(turns | {line["session"] for line in self.of("posted")})

    def unfinished(self):
        return sorted(self.asked().keys() - self.ended())

    def to_see_to(self):
        """What the last one is to ask for: all that is not known to have ended, and some of what
        is.
        """
        ended = sorted(self.ended() & self.asked().keys())  # and not the turns of posts
        return [*self.unfinished(), *ended[:: max(1, len(ended) // SEEN_AGAIN)]]

    def figures(self):
        starts = self.of("start")
        return {
            "lives": len(self.of("born")),
            "runs": len(self.asked()),
            "turns": sum(session is not None for session in self.asked().values()),
            "recovered": len(self.of("recovered")),
            "answered": sum(line["won"] for line in self.of("answered")),
            "lost": len(self.of("lost")),
            "stuck": len(self.of("stuck")),
            "calls": len({line["key"] for line in starts}),
            "calls made again": sum(
                count > 1 for count in Counter(line["key"] for line in starts).values()
            ),
            "begun late": sum(
                line["t"] - line["look"] > 0.1 for line in starts if line["look"] is not None
            ),
            "forks": len(self.of("forked")),
            "posts": len(self.of("posted")),
            "events": len({(line["run"], line["seq"]) for line in self.of("shown")}),
        }

    def problems(self, seed, *, loses=False):
        """The promises that did not hold.

        A store that `loses` its newest writes promises less: what they recorded may be done again.
        """
        checks = (keys, ends, histories, answers, forks)
        if not loses:  # an acknowledged post may be among the writes that were lost
            checks += posts, numbers, owners, stale_calls, calls_that_were_recorded, turn_order
        return [f"{check.__name__}: {problem}" for check in checks for problem in check(self, seed)]


def numbers(logs, _seed):
    """No number for two events of a run."""
    known = {}
    for line in logs.of("shown"):
        if known.setdefault((line["run"], line["seq"]), line)["content"] != line["content"]:
            yield (
                f"event {line['seq']} of {line['run']} is two: {known[line['run'], line['seq']]} "
                f"and {line}"
            )


def owners(logs, _seed):
    """What a later owner writes stands behind all that an earlier one has written.

    Who continues a run that it names shows what was recorded before, unchanged.
    """
    for run, shown in logs.by_run("shown").items():
        spans, known = {}, {}
        for line in shown:
            if line["fence"]:
                event = line["seq"], line["made"]
                known[event] = min(known.get(event, line["fence"]), line["fence"])
        for line in shown:
            if (
                line["fence"] == known.get((line["seq"], line["made"]))
                and line["result_of"] is None
            ):
                first, last = spans.get(line["fence"], (line["seq"], line["seq"]))
                spans[line["fence"]] = min(first, line["seq"]), max(last, line["seq"])
        for (fence, (_, last)), (later, (first, _)) in pairwise(sorted(spans.items())):
            if last >= first:
                yield (
                    f"{run}: under fence {fence} up to event {last}, under {later} from event "
                    f"{first}"
                )


def stale_calls(logs, _seed):
    """No owner lets a call begin after a later one has acted: by the time of its last look at its
    lease, behind which nothing can hold it up but the machine.
    """
    for run, lines in logs.by_run("start", "shown").items():
        acted = [(line["t"], line["fence"]) for line in lines if line["fence"]]
        for line in lines:
            if line["what"] != "start":
                continue
            if line["look"] is None:
                yield f"{run}: a call began, and nobody has looked at its lease: {line}"
                continue
            later = [(t, fence) for t, fence in acted if fence > line["fence"] and t < line["look"]]
            if later:
                yield (
                    f"{run}: a call began under fence {line['fence']}, looked at {line['look']}, "
                    f"and fence {later[0][1]} had acted at {later[0][0]}: {line}"
                )


def keys(logs, _seed):
    """One key for each call, and one call for each key."""
    calls, by_key = {}, {}
    for line in logs.of("start"):
        call = line["run"], line["call"]
        if calls.setdefault(call, line["key"]) != line["key"]:
            yield f"{call} has the keys {calls[call]} and {line['key']}"
        if by_key.setdefault(line["key"], call) != call:
            yield f"{line['key']} is that of {by_key[line['key']]} and of {call}"


def calls_that_were_recorded(logs, _seed):
    """A call whose result was shown, and so recorded, is not begun again."""
    shown = {}
    for line in logs.of("shown"):
        if line["result_of"] is not None:
            shown.setdefault((line["run"], line["result_of"]), line["t"])
    for line in logs.of("start"):
        if (
            line["look"] is not None
            and shown.get((line["run"], line["id"]), line["look"]) < line["look"]
        ):
            yield f"{line} began again, though its result was shown"


def ends(logs, _seed):
    """Each run that was asked for has ended, in one way."""
    outcomes = defaultdict(set)
    for line in logs.of("ended"):
        outcomes[line["run"]].add((line["status"], line["said"]))
    for run in sorted(logs.asked()):
        if outcomes[run] != {("completed", f"{run} done")}:
            yield f"{run} has ended as {sorted(outcomes[run], key=str)}"


def histories(logs, seed):
    """Each turn of a session is in it, whole, and once; and nothing else is."""
    asked = logs.asked()
    for line in logs.of("history"):
        if line["session"].startswith("p"):
            continue  # what was posted there is looked at below
        found = defaultdict(list)
        for role, text in line["said"]:
            found[text.split()[0]].append((role, text))
        wanted = {run for run, session in asked.items() if session == line["session"]}
        for run in sorted(wanted | set(found)):
            if not _is_whole(found[run], run, plan(seed, run)):
                yield (
                    f"{line['session']}: of {run} it has {found[run]}, and the plan was "
                    f"{plan(seed, run)}"
                )


def posts(logs, _seed):
    """Each acknowledged post is heard once, and those of one sender in their order.

    One whose sender was killed before it had the receipt may be heard, too, but not twice. A
    reminder has its place when its time has come.
    """
    posted = defaultdict(list)
    for line in logs.of("posted"):
        posted[line["session"]].append(line)
    for line in logs.of("history"):
        if not line["session"].startswith("p"):
            continue
        said = [text for role, text in line["said"] if role == "user"]
        for text, count in Counter(said).items():
            if count > 1:
                yield f"{line['session']}: {text} was heard {count} times"
        places = {text: place for place, text in enumerate(said)}
        last = {}
        for one in sorted(posted[line["session"]], key=lambda one: one["number"]):
            if one["text"] not in places:
                yield f"{line['session']}: {one['text']} was never heard"
            elif not one["later"]:
                before = last.get(one["sender"], -1)
                if places[one["text"]] < before:
                    yield f"{line['session']}: {one['text']} was heard out of order"
                last[one["sender"]] = max(before, places[one["text"]])


def _is_whole(found, run, steps):
    """The results of one reply may stand in any order."""
    at = 1
    if found[:1] != [("user", run)]:
        return False
    for number, names in enumerate(steps):
        end = at + 1 + len(names)
        results = sorted(
            ("tool", f"{run} {number} {part} {name}") for part, name in enumerate(names)
        )
        if (
            found[at : at + 1] != [("assistant", f"{run} {number}")]
            or sorted(found[at + 1 : end]) != results
        ):
            return False
        at = end
    return found[at:] == [("assistant", f"{run} done")]


def answers(logs, _seed):
    """Each caller of a store was answered within the documented time."""
    for line in logs.of("unanswered"):
        yield (
            f"a caller of {line['operation']} of {line['key']} has waited for {line['waits']:.0f} s"
        )
    if logs.of("taken"):
        yield f"{len(logs.of('taken'))} values were taken that are too large"


def forks(logs, _seed):
    """Each child has done what it was forked for, or was told why not."""
    for line in logs.of("forked"):
        if line["code"] != 0:
            yield f"a forked process has ended with {line['code']}"


def turn_order(logs, _seed):
    """What was sent to a session after something else had ended stands behind it."""
    ended, asked = {}, {}
    for line in logs.of("asked", "ended"):
        (asked if line["what"] == "asked" else ended).setdefault(line["run"], line["t"])
    for line in logs.of("history"):
        order = [text for role, text in line["said"] if role == "user"]
        latest = 0.0  # when the last of those that stand in front was sent
        for run in order:
            if ended.get(run, latest) < latest:
                yield (
                    f"{line['session']}: {run} had ended before one was sent that stands in "
                    "front of it"
                )
            latest = max(latest, asked.get(run, 0.0))
