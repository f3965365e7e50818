"""The program that `duestream conformance` plays its faults against: duestream conformance --worker "python3 probe.py"."""

import os
import signal
import threading
import time

from duestream_worker import Job, Stopped, Worker


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def handle(job: Job) -> None:
    say("began", job.id, job.token)
    if job.data["do"] == "fail":
        raise RuntimeError("on purpose")
    if job.data["do"] == "wait":
        while job.stopped is None:
            time.sleep(0.01)
        say("stopped", job.id)
        raise Stopped(job.stopped)


worker = Worker(os.environ["DUESTREAM_URLS"].split(","), os.environ["DUESTREAM_QUEUE"], handle, concurrency=5)
if os.environ.get("DUESTREAM_FORK") == "1" and os.fork() == 0:
    try:
        worker.run()
    except RuntimeError:
        say("refused")
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=worker.stop, args=(0.5,)).start())
worker.run()
