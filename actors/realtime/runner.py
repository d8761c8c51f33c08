"""`RealtimeRunner`, the entry point for realtime sessions.

It holds the settings that all sessions of one agent share, and nothing of a session.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any

from ...runtime.agent.hooks import RunHooks, check_hooks
from ...runtime.data.chat import Message
from ...runtime.durability.leases import Busy
from ...runtime.errors import UsageError
from ...runtime.session import check_busy, check_session_id
from ...runtime.system.system import ActorSystem
from .agent import RealtimeAgent
from .config import RealtimeRunConfig, checked_config
from .items import RealtimeItem
from .model import RealtimeModelConfig
from .openai_realtime import OpenAIRealtimeModel
from .session import RealtimeSession

__all__ = ["RealtimeRunner"]


class _Opening:
    """A session that is about to be opened: await it, or use it directly with `async with`."""

    def __init__(self, session: RealtimeSession) -> None:
        self._session = session

    def __await__(self) -> Generator[Any, None, RealtimeSession]:
        return self._made().__await__()

    async def _made(self) -> RealtimeSession:
        return self._session

    async def __aenter__(self) -> RealtimeSession:
        return await self._session.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()


class RealtimeRunner:
    """Opens sessions of a `RealtimeAgent`.

    async with RealtimeRunner(agent).run() as session:
        await session.send_message("Hello.")
        async for event in session: ...
    """

    def __init__(
        self,
        starting_agent: RealtimeAgent,
        *,
        model: Any = None,
        config: RealtimeRunConfig | None = None,
        store: Any = None,
        system: ActorSystem | None = None,
        hooks: RunHooks | None = None,
    ) -> None:
        if not isinstance(starting_agent, RealtimeAgent):
            msg = (
                "RealtimeRunner: starting_agent must be a RealtimeAgent, got "
                f"{starting_agent!r}. Use a Runner for other agents."
            )
            raise UsageError(msg)
        check_hooks(hooks, RunHooks, "RealtimeRunner")
        self._agent = starting_agent
        self._model = OpenAIRealtimeModel() if model is None else model
        self._config = checked_config(config)
        self._store = store
        self._system = system
        self._hooks = hooks

    def run(
        self,
        *,
        context: object = None,
        model_config: RealtimeModelConfig | None = None,
        session_id: str | None = None,
        history: Sequence[RealtimeItem | Message] = (),
        busy: Busy = "reject",
    ) -> _Opening:
        """Make a session: `async with runner.run() as session`, or `session = await runner.run()`.

        In the second form, `async with` or `enter()` opens the session.
        """
        if session_id is not None:
            check_session_id(session_id)
        check_busy(busy)
        session = RealtimeSession(
            self._model,
            self._agent,
            context,
            model_config,
            self._config,
            store=self._store,
            system=self._system,
            hooks=self._hooks,
            session_id=session_id,
            history=history,
            busy=busy,
        )
        return _Opening(session)
