"""Which version of the SDK's interface this is.

Owns: that one text. It must never be taken for the version of understudy.
"""

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.22.0"
