"""What describes sandboxes, by the SDK's names.

Owns the descriptions that programs and `RunConfig` may hold: a run that would need a sandbox is refused. Its files:

    manifest        what is to be in a sandbox
    snapshot        what is kept of one
    entries         files and mounts
    sandboxes       the kinds of sandboxes
    session         their sessions

It must never start anything.
"""

from .manifest import Manifest

__all__ = ["Manifest"]
