"""The inbox of a session: stored posts that nobody has heard.

Each post is a value under a key of its own; the keys are in the order of the posts. A sender writes
it in the step that takes the next number, so an acknowledged post has its final place. The run that
has the turn takes a post, which ends every withdrawal, and removes it in the step that stores the
message as heard. Taking and removing need the claim of the turn or run, so a process that has lost
it delivers nothing. No step needs another protocol than the store's claims.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock as ThreadLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from ..codec.packing import pack, unpack
from ..data.chat import Message, new_id
from ..data.interrupt import point_in_time
from ..data.posts import BOUNDARIES, Boundary, Post, Posted
from ..durability.store_keys import (
    arrivals_key,
    inbox_key,
    inbox_prefix,
    post_ids_key,
    post_key,
    posted_key,
    reminder_key,
    session_key,
    session_of,
)
from ..durability.timers import Timer, TimerKind, timers_of
from ..errors import CheckpointError, InboxFull, RunLost, StoreError, UsageError, WriteRefused
from ..stores.run_entries import DropEntry
from ..stores.writes import Expect, Put, Remove, Write
from ..tasks import all_at_once

if TYPE_CHECKING:
    from ..durability.store_access import StoreAccess

__all__ = ["HeardPosts", "Inbox", "InboxFilter", "Stored", "listen_for_posts"]

InboxFilter: TypeAlias = Callable[[Sequence[Post]], Sequence[Post]]
"""Returns those of the pending posts that are heard now. The others stay in the inbox."""

Commit: TypeAlias = Callable[[Sequence[Write]], Awaitable[None]]

_FORMAT: Final = 1
_MOST_BYTES: Final = 1 << 20
_LONGEST_ID: Final = 200
_ATTEMPTS: Final = 200
"""Attempts to take the next number. Each refusal means that another post took it."""


_NONE: Final[frozenset[str]] = frozenset()
_NOTHING: Final[Mapping[int, str]] = MappingProxyType({})


class Stored(NamedTuple):
    """A post as the store has it."""

    key: str
    value: bytes
    post: Post
    is_taken: bool
    """True if a run was about to hear it."""


class Inbox:
    """The posts to one session."""

    __slots__ = (
        "_access",
        "_agent",
        "_most",
        "choose",
        "session_id",
        "waits_for_answers",
    )

    def __init__(
        self,
        store_access: StoreAccess,
        agent_name: str,
        session_id: str,
        max_pending: int = 1000,
        choose: InboxFilter | None = None,
        *,
        waits_for_answers: bool = False,
    ) -> None:
        self.choose = choose
        # True if posts start no turn while a run of the session waits for an answer.
        self.waits_for_answers = waits_for_answers
        self._access = store_access
        self._agent = agent_name
        self.session_id = session_id
        self._most = max_pending

    def __repr__(self) -> str:
        return f"<Inbox of session {self.session_id!r}>"

    async def post(
        self,
        message: str | Message,
        post_id: str | None = None,
        when: Boundary = "safe_point",
        sender: str | None = None,
        not_before: timedelta | datetime | None = None,
    ) -> Posted:
        """Store a post, once. Returns when it is stored."""
        message, content = _checked(message, post_id, when, sender)
        at = None if not_before is None else point_in_time("post()", "not_before", not_before)
        if at is not None:
            self._access.require_list("post(not_before=...)")
        mark = _digest(content)
        for _ in range(_ATTEMPTS):
            known, last, pending = await self._look(post_id)
            if known is not None:
                return self._again(post_id, known, mark, sender)
            if len(pending) >= self._most:
                msg = (
                    f"{self._name}: {len(pending)} posts wait to be heard, and max_pending is "
                    f"{self._most}. Wait until a turn has heard them, or pass a larger max_pending."
                )
                raise InboxFull(msg)
            number = (0 if last is None else int(unpack(last))) + 1
            post = Post(post_id or new_id(), number, message, when, at, sender, datetime.now(UTC))
            writes = self._writes(post, last)
            if post_id is not None:
                key = self._id_key(post_id)
                writes += [Expect(key), Put(key, pack([mark, number, sender]))]
            if not await self._access.commit_if_unchanged(writes):
                continue  # another post was stored in between
            _known_posts_of(self._access).arrived(self._agent, self.session_id)
            return self.receipt(post)
        msg = (
            f"{self._name}: other posts took the next number {_ATTEMPTS} times in a row. Post it "
            "again."
        )
        raise StoreError(msg)

    def _writes(self, post: Post, last: bytes | None) -> list[Write]:
        """Return the writes that store a post, if `last` is still the last number."""
        taken: list[Write] = [Expect(self.number_key, last), Put(self.number_key, pack(post.seq))]
        if post.not_before is not None:
            return [*taken, self._timer(post).entry()]
        return [
            *taken,
            Put(self.key_of(post.seq), _packed(post, None)),
            Put(arrivals_key(self._agent), pack(post.id)),
        ]

    def _timer(self, post: Post) -> Timer:
        """Return the timer of a post that must not be heard yet."""
        assert post.not_before is not None
        content = [post.id, post.seq, post.message, post.when, post.sender, post.posted_at]
        key = reminder_key(self._agent, self.session_id, post.seq)
        return Timer(key, "reminder", self._agent, self.session_id, post.not_before, content)

    async def deliver(self, timer: Timer) -> bool:
        """Move a post whose time has come into the inbox, with the next number.

        Returns False if it was withdrawn, or another process has moved it.
        """
        post = post_of(timer).replace(not_before=None)
        return await self.store(post, timer.removal(), timer.key)

    async def store(self, post: Post, also: Sequence[Write], key: str) -> bool:
        """Store a post with the next number, and `also`, in one step.

        Returns False if that is refused because of `key`: another process has done it.
        """
        for _ in range(_ATTEMPTS):
            last = await self._access.get(self.number_key)
            numbered = post.replace(seq=(0 if last is None else int(unpack(last))) + 1)
            try:
                await self._access.commit(None, [*also, *self._writes(numbered, last)])
            except WriteRefused as refused:
                if refused.key == key:
                    return False
                continue
            _known_posts_of(self._access).arrived(self._agent, self.session_id)
            return True
        return False

    async def pending(self) -> list[Post]:
        """Return the posts that nobody has heard, in order, and then those whose time comes."""
        return [
            *(stored.post for stored in await self.stored()),
            *(post_of(timer) for timer in await self._timers("reminder")),
        ]

    async def _timers(self, *kinds: TimerKind) -> list[Timer]:
        if not self._access.lists_runs:
            return []
        timers = await timers_of(self._access, self._agent, self.session_id)
        return [timer for timer in timers if timer.kind in kinds]

    async def withdraw(self, post_id: str) -> bool:
        """Remove a post. Returns False if it was heard, or is being heard."""
        for stored in await self.stored():
            if stored.post.id != post_id:
                continue
            if stored.is_taken and await self._has_turn():
                return False
            return await self._access.commit_if_unchanged(
                [Expect(stored.key, stored.value), Remove(stored.key)]
            )
        for timer in await self._timers("reminder"):
            if timer.content[0] == post_id:
                return await self._access.commit_if_unchanged(timer.removal())
        return False

    def turn_is_free(self) -> None:
        """Report to this process that the inbox may have posts that a turn can start with."""
        if _known:
            _known_posts_of(self._access).tell(self._agent, self.session_id)

    async def may_have_posts(self) -> bool:
        """Return whether the inbox has to be read: always, if other processes may post to it."""
        if not self._access.answers_at_once:
            return True
        known = _known_posts_of(self._access)
        if self._agent not in known.agents:
            keys = await self._access.keys(inbox_prefix(self._agent))
            known.listed(self._agent, {session_of(self._agent, key) for key in keys})
        return (self._agent, self.session_id) in known.sessions

    async def stored(self) -> list[Stored]:
        """Return the posts that nobody has heard, in order."""
        known = _known_posts_of(self._access) if self._access.answers_at_once else None
        arrivals = 0 if known is None else known.arrivals
        keys = await self._access.keys(self._prefix)
        if not keys:
            if known is not None:
                known.none(self._agent, self.session_id, arrivals)
            return []
        values = await all_at_once([self._access.get(key) for key in keys], "the store")
        return [
            _read(key, value) for key, value in zip(keys, values, strict=True) if value is not None
        ]

    async def removal(self) -> list[Write]:
        """Return the writes that remove everything of this inbox.

        They are refused if a post is stored in the meantime.
        """
        last = await self._access.get(self.number_key)
        found: list[list[str]] = list(
            await all_at_once(
                [
                    self._access.keys(self._prefix),
                    self._access.keys(post_ids_key(self._agent, self.session_id)),
                ],
                "the store",
            )
        )
        timers = [DropEntry(timer.key) for timer in await self._timers("reminder", "task")]
        return [
            Expect(self.number_key, last),
            *map(Remove, (*found[0], *found[1], self.number_key)),
            *timers,
        ]

    async def _look(self, post_id: str | None) -> tuple[bytes | None, bytes | None, Sequence[str]]:
        """Return what the store knows of that id, the last number, and the pending posts."""
        known, last, pending = await all_at_once(
            [
                _nothing() if post_id is None else self._access.get(self._id_key(post_id)),
                self._access.get(self.number_key),
                self._access.keys(self._prefix),
            ],
            "the store",
        )
        return known, last, pending

    def _again(self, post_id: str | None, known: bytes, mark: bytes, sender: str | None) -> Posted:
        before, number, _ = unpack(known)
        if before != mark:
            msg = (
                f"{self._name}: id={post_id!r} belongs to a post with another content. The same id "
                "means the same post: use a unique id for each."
            )
            raise UsageError(msg)
        assert post_id is not None
        return Posted(post_id, number, self.session_id, None, True, sender)

    def receipt(self, post: Post) -> Posted:
        """Return the receipt of a post, which its event has, too."""
        return Posted(post.id, post.seq, self.session_id, None, False, post.sender)

    def key_of(self, number: int) -> str:
        """Return the key of a post that nobody has heard."""
        return post_key(self._agent, self.session_id, number)

    async def _has_turn(self) -> bool:
        """Return whether a run has the turn of the session, and so may be hearing a post."""
        return await self._access.holder(session_key(self.session_id)) is not None

    @property
    def agent_name(self) -> str:
        """The root agent whose turns hear the posts."""
        return self._agent

    @property
    def _name(self) -> str:
        return f"session {self.session_id!r}"

    @property
    def _prefix(self) -> str:
        return inbox_key(self._agent, self.session_id)

    @property
    def number_key(self) -> str:
        """The key of the number of the last post."""
        return posted_key(self._agent, self.session_id)

    def _id_key(self, post_id: str) -> str:
        return post_ids_key(self._agent, self.session_id) + post_id


def post_of(timer: Timer) -> Post:
    """Return the post of a timer."""
    post_id, number, message, when, sender, posted_at = timer.content
    return Post(post_id, number, message, when, timer.at, sender, posted_at)


class HeardPosts:
    """The inbox as the run that has the turn hears it."""

    __slots__ = ("_commit", "_heard", "_hearing", "_inbox", "_seen")

    def __init__(self, inbox: Inbox, commit: Commit) -> None:
        self._inbox = inbox
        self._commit = commit  # under the claim of the turn, or of the run
        # Keys of posts that this run hears or has heard.
        self._seen: frozenset[str] = _NONE
        # Keys of heard posts that are still in the store, by the numbers of the posts.
        self._heard: Mapping[int, str] = _NOTHING
        self._hearing: Lock | None = None

    @property
    def hearing(self) -> Lock:
        """Held while an agent takes posts and shows them. Made on first use."""
        if self._hearing is None:
            self._hearing = Lock()
        return self._hearing

    async def at_turn(self, stored: list[Stored]) -> list[Post]:
        """Take the posts for a turn that starts. `stored` has just been read."""
        return await self._take(lambda posts: posts, stored)

    async def at_safe_point(self) -> list[Post] | None:
        """Take the posts that are heard during a turn. None: the turn must end for a post."""
        stored = await self._unseen()
        if any(one.post.when == "preempt" for one in stored) and any(
            post.when == "preempt" for post in self._allowed([one.post for one in stored])
        ):
            return None
        return await self._take(_for_safe_point, stored)

    def _allowed(self, posts: list[Post]) -> list[Post]:
        """Return the posts that the user's function lets a turn hear."""
        if self._inbox.choose is None or not posts:
            return posts
        return _chosen(self._inbox.choose(tuple(posts)), posts)

    async def _unseen(self) -> list[Stored]:
        if not await self._inbox.may_have_posts():
            return []
        return [stored for stored in await self._inbox.stored() if stored.key not in self._seen]

    async def _take(
        self, choose: Callable[[list[Post]], list[Post]], stored: list[Stored]
    ) -> list[Post]:
        while stored:
            posts = self._allowed(choose([one.post for one in stored]))
            wanted = {post.seq for post in posts}
            taken = [one for one in stored if one.post.seq in wanted]
            keys = {one.key for one in taken}
            self._seen |= keys  # before anything is awaited: another agent may look, too
            writes: list[Write] = []
            for one in taken:
                writes.append(Expect(one.key, one.value))
                writes.append(Put(one.key, _packed(one.post, new_id())))
            if not writes:
                return posts
            try:
                await self._commit(writes)
            except WriteRefused:
                self._seen -= keys  # one of them was withdrawn at this moment
                stored = await self._unseen()
                continue
            except BaseException:
                self._seen -= keys
                raise
            return posts
        return []

    def posted(self, post: Post) -> Posted:
        """Return the mark of the event that shows a post."""
        return self._inbox.receipt(post)

    def hear(self, posted: Posted) -> None:
        """Note that a post is part of the run from now on. It is removed with the next step."""
        self._heard = {**self._heard, posted.seq: self._inbox.key_of(posted.seq)}

    def end(self) -> None:
        """Take no more posts: the turn is released."""
        self._commit = _refuse

    def writes(self) -> list[Write]:
        """Return the writes of the step that stores heard posts as part of the run or session."""
        return [Remove(key) for key in self._heard.values()] if self._heard else []

    def written(self, writes: Sequence[Write]) -> None:
        """Note that those writes are done."""
        gone = {write.key for write in writes}
        self._heard = {number: key for number, key in self._heard.items() if key not in gone}


def _for_safe_point(posts: list[Post]) -> list[Post]:
    """Return the posts for a safe point.

    A post for the next turn holds back the later posts of its sender, so that their order stays.
    """
    held: set[str | None] = set()
    found = []
    for post in posts:
        if post.when == "turn_end":
            held.add(post.sender)
        elif post.sender not in held:
            found.append(post)
    return found


def _chosen(chosen: object, posts: list[Post]) -> list[Post]:
    """Return the posts that the user's function chose, in their order."""
    known = {post.seq for post in posts}
    listed: list[Any] = list(chosen) if isinstance(chosen, Sequence) else [chosen]
    for post in listed:
        if not isinstance(post, Post) or post.seq not in known:
            msg = (
                "session(inbox=...): the function must return some of the posts that it was "
                f"given, got {chosen!r:.200}."
            )
            raise UsageError(msg)
    wanted = {post.seq for post in listed}
    return [post for post in posts if post.seq in wanted]


def _checked(
    message: object, post_id: str | None, when: Boundary, sender: str | None
) -> tuple[Message, bytes]:
    """Return the message of a post, and its content as bytes. Raise if it is not valid."""
    if isinstance(message, str):
        message = Message("user", message)
    if not isinstance(message, Message) or message.role != "user":
        msg = (
            f"post(): message must be a string or a user message, got {message!r:.200}. Write "
            "Message.user(...)."
        )
        raise UsageError(msg)
    if when not in BOUNDARIES:
        msg = f"post(): when must be 'safe_point', 'turn_end' or 'preempt', got {when!r}."
        raise UsageError(msg)
    for name, text in (("id", post_id), ("sender", sender)):
        if text is not None and (
            not isinstance(text, str) or not 0 < len(text.encode(errors="replace")) <= _LONGEST_ID
        ):
            msg = (
                f"post(): {name} must be a string of 1 to {_LONGEST_ID} bytes, or None, got "
                f"{text!r:.80}."
            )
            raise UsageError(msg)
    content = pack([message.replace(id=""), when, sender])
    if len(content) > _MOST_BYTES:
        msg = (
            f"post(): message must have at most {_MOST_BYTES:,} bytes, got {len(content):,}. Store "
            "what is large elsewhere, and post a link to it."
        )
        raise UsageError(msg)
    return message, content


def _packed(post: Post, taken: str | None) -> bytes:
    """Encode a post. `taken` is another text each time that a run takes it: a withdrawal that has
    read the post before is refused.
    """
    return pack(
        [
            _FORMAT,
            post.id,
            post.seq,
            post.message,
            post.when,
            post.sender,
            post.posted_at,
            taken,
        ]
    )


def _read(key: str, value: bytes) -> Stored:
    try:
        form, post_id, number, message, when, sender, posted_at, taken = unpack(value)
    except (TypeError, ValueError) as problem:
        msg = (
            f"the stored post {key!r} is damaged: {problem}. Delete that key, and post the message "
            "again."
        )
        raise CheckpointError(msg) from problem
    if form != _FORMAT:
        msg = f"the stored post {key!r} was written by a newer version of offbook. Update offbook."
        raise CheckpointError(msg)
    return Stored(
        key,
        value,
        Post(post_id, number, message, when, None, sender, posted_at),
        taken is not None,
    )


def _digest(content: bytes) -> bytes:
    from hashlib import sha256  # noqa: PLC0415 -- most programs do without it

    return sha256(content).digest()


async def _nothing() -> Any:
    return None


async def _refuse(_writes: Sequence[Write]) -> None:
    raise RunLost("the turn of the session has ended, so it hears no more posts.")


class _KnownPosts:
    """The inboxes of one store in which this process knows of posts, and who is told of new ones.

    Other processes may post, too, except in a store in this process's memory.
    """

    def __init__(self, *, only_here: bool) -> None:
        self._only_here = only_here  # whether no other process can post
        self.arrivals = 0
        self.listeners: set[Callable[[str, str], None]] = set()
        # The inboxes that may have posts, with the number of the last arrival; of the agents
        # whose inboxes were listed.
        self.sessions: dict[tuple[str, str], int] = {}
        self.agents: set[str] = set()

    def none(self, agent_name: str, session_id: str, arrivals: int) -> None:
        """Note that an inbox was empty when there had been that many arrivals."""
        with _lock:
            if self.sessions.get((agent_name, session_id), 0) <= arrivals:
                self.sessions.pop((agent_name, session_id), None)

    def listed(self, agent_name: str, session_ids: set[str]) -> None:
        """Note which inboxes of an agent had posts."""
        with _lock:
            self.agents.add(agent_name)
            for session_id in session_ids:
                self.sessions.setdefault((agent_name, session_id), self.arrivals)

    def arrived(self, agent_name: str, session_id: str) -> None:
        """Note a post, and tell those who listen."""
        with _lock:
            self.arrivals += 1
            if self._only_here:
                self.sessions[agent_name, session_id] = self.arrivals
        self.tell(agent_name, session_id)

    def tell(self, agent_name: str, session_id: str) -> None:
        """Tell those who listen that an inbox may have posts, or that its turn is free."""
        if self.listeners:
            with _lock:
                told = tuple(self.listeners)
            for one in told:
                one(agent_name, session_id)


_known: Final[WeakKeyDictionary[Any, _KnownPosts]] = WeakKeyDictionary()
_lock: Final = ThreadLock()


def _known_posts_of(access: StoreAccess) -> _KnownPosts:
    with _lock:
        try:
            known = _known.get(access.store)
            if known is None:
                known = _known[access.store] = _KnownPosts(only_here=access.answers_at_once)
        except TypeError:  # a custom store that cannot be a weak key: others look periodically
            known = _KnownPosts(only_here=False)
        return known


def listen_for_posts(
    access: StoreAccess, arrived: Callable[[str, str], None]
) -> Callable[[], None]:
    """Call `arrived(agent, session_id)`, in any thread, after each post of this process.

    Returns a function that ends this.
    """
    listeners = _known_posts_of(access).listeners
    with _lock:
        listeners.add(arrived)

    def stop() -> None:
        with _lock:
            listeners.discard(arrived)

    return stop
