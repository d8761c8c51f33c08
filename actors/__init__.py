"""What plays: agents and what they are composed of.

Nothing here yet: agents are built on the actors of `understudy.runtime`, which it may import, and which never imports it.
"""
