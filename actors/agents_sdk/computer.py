"""A computer that a model uses.

Owns: what a program's computer has to do. It must never do it.
"""

from __future__ import annotations

import abc
from typing import Literal, TypeAlias

__all__ = ["AsyncComputer", "Button", "Computer", "Environment"]

Environment: TypeAlias = Literal["mac", "windows", "ubuntu", "browser"]
Button: TypeAlias = Literal["left", "right", "wheel", "back", "forward"]


class Computer(abc.ABC):
    """A computer. What it does, it does at once."""

    @property
    def environment(self) -> Environment | None:
        return None

    @property
    def dimensions(self) -> tuple[int, int] | None:
        return None

    @abc.abstractmethod
    def screenshot(self) -> str: ...
    @abc.abstractmethod
    def click(self, x: int, y: int, button: Button) -> None: ...
    @abc.abstractmethod
    def double_click(self, x: int, y: int) -> None: ...
    @abc.abstractmethod
    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    @abc.abstractmethod
    def type(self, text: str) -> None: ...
    @abc.abstractmethod
    def wait(self) -> None: ...
    @abc.abstractmethod
    def move(self, x: int, y: int) -> None: ...
    @abc.abstractmethod
    def keypress(self, keys: list[str]) -> None: ...
    @abc.abstractmethod
    def drag(self, path: list[tuple[int, int]]) -> None: ...


class AsyncComputer(abc.ABC):
    """A computer that takes its time."""

    @property
    def environment(self) -> Environment | None:
        return None

    @property
    def dimensions(self) -> tuple[int, int] | None:
        return None

    @abc.abstractmethod
    async def screenshot(self) -> str: ...
    @abc.abstractmethod
    async def click(self, x: int, y: int, button: Button) -> None: ...
    @abc.abstractmethod
    async def double_click(self, x: int, y: int) -> None: ...
    @abc.abstractmethod
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    @abc.abstractmethod
    async def type(self, text: str) -> None: ...
    @abc.abstractmethod
    async def wait(self) -> None: ...
    @abc.abstractmethod
    async def move(self, x: int, y: int) -> None: ...
    @abc.abstractmethod
    async def keypress(self, keys: list[str]) -> None: ...
    @abc.abstractmethod
    async def drag(self, path: list[tuple[int, int]]) -> None: ...
