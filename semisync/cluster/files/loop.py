"""An event loop in its own thread, for plain functions that call asynchronous ones."""

import asyncio
import concurrent.futures
import threading
from typing import Any, Callable, Optional

from semisync.common.errors import UsageError


class LoopThread:
    """Runs from the start until `close`.

    Args:
        name: of the thread.

    Attributes:
        loop: the event loop.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, work: Any) -> Any:
        """The result of a coroutine; it is cancelled where the caller is interrupted.

        Raises:
            UsageError: the loop was closed meanwhile.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise UsageError("another thread closed it in the middle of this") from None
        except BaseException:
            future.cancel()
            raise

    def close(self, finish: Optional[Callable[[], Any]] = None) -> None:
        """Ends the loop's tasks and the thread; a second call does nothing.

        Args:
            finish: coroutine function that runs last.
        """
        if self.loop.is_closed():
            return
        self.call(_cancel_others())
        if finish is not None:
            self.call(finish())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _cancel_others() -> None:
    own = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not own]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
