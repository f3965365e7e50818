"""A worker for duestream over HTTP, with nothing but Python's own library.

    from duestream_worker import Job, Worker

    def handle(job: Job) -> None:
        send(job.data)

    Worker("http://127.0.0.1:7420", "emails", handle).run()

A handler is a function, which runs in a thread, or a coroutine function, which runs in the loop of `await worker.serve()`.
It may begin more than once for one job: give `job.token` to your store, which refuses a token that is lower than one it has.
"""

from ._worker import Defer, Fatal, Handler, Job, Refused, RetryIn, Stopped, Worker

__all__ = ["Defer", "Fatal", "Handler", "Job", "Refused", "RetryIn", "Stopped", "Worker"]
__version__ = "0.1.0"
