"""A machine whose clocks are moved by hand, for stores that ask one for the time."""


class Machine:
    """A machine whose clocks are moved by hand."""

    def __init__(self):
        self.up, self.at, self.name = 1000.0, 1_700_000_000.0, "first"

    def boottime(self):
        return self.up

    def wall(self):
        return self.at

    def boot(self):
        return self.name

    def passes(self, seconds):
        self.up += seconds
        self.at += seconds

    def starts_again(self, *, after=0.0, up=5.0, name="next"):
        self.at += after
        self.up, self.name = up, name
