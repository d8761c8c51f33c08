"""The log of this package.

Owns: the one logger that all rooms write to. It must never configure handlers or levels: the program does.
"""

import logging
from typing import Final

__all__ = ["logger"]

logger: Final = logging.getLogger("understudy")
