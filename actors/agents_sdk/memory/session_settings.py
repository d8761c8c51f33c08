"""`SessionSettings`, by the name of the SDK's module for them."""

from .settings import SessionSettings as SessionSettings
