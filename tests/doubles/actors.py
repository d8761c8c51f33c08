"""The smallest actors, on the loop and in a thread."""

from offbook.runtime import Actor, ThreadActor


class Echo(Actor):
    def on_receive(self, message):
        return message


class ThreadEcho(ThreadActor):
    def on_receive(self, message):
        return message
