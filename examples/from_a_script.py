"""Actors in a program without an event loop: pykka's way of calling, with blocking replies and
proxies.

python examples/from_a_script.py
"""

import time

from offbook import Actor, ActorSystem, ThreadActor


class Camera(ThreadActor):
    """Call a blocking driver, and therefore use a separate thread."""

    def take(self, name: str) -> str:
        time.sleep(0.05)
        return f"{name}.png"


class Album(Actor):
    """Runs on the system's event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: list[str] = []

    def add(self, picture: str) -> int:
        self.pictures.append(picture)
        return len(self.pictures)


def main() -> None:
    with ActorSystem.in_thread() as system:
        cameras = [system.spawn(Camera, name=f"camera-{n}").proxy() for n in range(3)]
        album = system.spawn(Album).proxy()
        shots = [
            camera.take(f"shot-{n}") for n, camera in enumerate(cameras)
        ]  # futures: the three work at once
        for shot in shots:
            album.add(shot.get(timeout=5)).get(timeout=5)
        print(album.pictures.get())


if __name__ == "__main__":
    main()
