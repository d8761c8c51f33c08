"""`SessionSettings`, by the name of the SDK's module for them."""

from .settings import SessionSettings as SessionSettings  # noqa: PLC0414 -- it is the SDK's place for it
