"""The servers of one environment's episode: opened, set up, called, asked for the grade, let go.

Calls the background loop from the environment's thread. Knows tasks, time-outs and results; not what an
agent writes or reads, nor what a grade is worth. The SDK is imported by the first `open`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mm_gym.errors import EnvironmentFailure
from mm_gym.mcp import loop
from mm_gym.mcp.config import MCPConfig
from mm_gym.mcp.results import ToolResult, find_grade, read_result
from mm_gym.mcp.tasksets import MCPCall, MCPTask, Taskset

if TYPE_CHECKING:
    from mm_gym.mcp.client import ServerTool, Session

logger = logging.getLogger("mm_gym.mcp")


class EpisodeServers:
    """What stands between an environment and the servers of its present episode.

    Args:
        config: Its limits, and whether servers are kept for later episodes.
        tasks: They name the servers.
    """

    def __init__(self, config: MCPConfig, tasks: Taskset) -> None:
        self.session: Session | None = None
        """The open connections; None between two episodes."""
        self._config = config
        self._tasks = tasks

    def __getstate__(self) -> dict[str, Any]:
        """Without open servers: a copy opens its own."""
        return {**self.__dict__, "session": None}

    def open(self, index: int) -> list[ServerTool]:
        """Start or reach the servers of a task; their tools.

        Raises:
            EnvironmentFailure: One can't be started or reached.
        """
        from mm_gym.mcp.client import open_session

        limits = self._config.limits
        work = open_session(self._tasks.servers(index), limits, self._config.servers)
        try:
            self.session = loop.run(work, limits.connect)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the servers did not start: {error}", kind="timeout") from error
        return self.session.tools

    def setup(self, task: MCPTask) -> tuple[list[str | np.ndarray], ToolResult]:
        """Run a task's setup: what the agent sees of it, and the last result.

        Raises:
            EnvironmentFailure: A call failed.
        """
        shown: list[str | np.ndarray] = []
        last = ToolResult()
        for call in task.setup:
            last = self.call(call.name, call.arguments, self._config.limits.setup)
            if last.is_error:
                raise EnvironmentFailure(f"setup by {call.name!r} failed: {last.text[:500]}", kind="server")
            shown += last.content
        if self._config.compat:
            return ([last.texts[-1] if last.texts else "Success"] if task.setup else []), last
        if not task.agent.append_setup_output:
            shown = []
        if task.agent.initial_screenshot:
            shown += self._screenshot()
        return shown, last

    def _screenshot(self) -> list[np.ndarray]:
        """The first picture of the screen, where a server has a tool for it."""
        session = self.session
        assert session is not None
        for tool, arguments in (("computer", {"action": "screenshot"}), ("screenshot", {})):
            if tool in session:
                result = self.call(tool, arguments, self._config.limits.call)
                return [] if result.is_error else list(result.images)
        logger.warning("agent_config.initial_screenshot: no server has a tool computer or screenshot")
        return []

    def call(self, tool: str, arguments: Mapping[str, Any], timeout: float) -> ToolResult:
        """Call a tool; an error of the tool is a result.

        Raises:
            EnvironmentFailure: The server is gone, hung, or sent what is no result.
        """
        session = self.session
        if session is None or not session.alive:
            raise EnvironmentFailure(
                "this episode's servers are gone: start it anew with reset()", kind="server"
            )
        try:
            raw = loop.run(session.call(tool, arguments, timeout), timeout)
        except TimeoutError as error:  # an in-process server that can't be interrupted
            session.give_up()
            raise EnvironmentFailure(f"{tool!r}: {error}", kind="timeout") from error
        return read_result(raw, self._config.limits, self._tasks.secrets)

    def evaluate(self, call: MCPCall) -> float:
        """The grade that an evaluation gives.

        Raises:
            EnvironmentFailure: It failed, or gave none; in `compat` the grade is 0 then.
        """
        result = self.call(call.name, call.arguments, self._config.limits.evaluate)
        compat = self._config.compat
        if result.is_error or result.structured.get("isError") is True:
            if compat:
                return 0.0
            raise EnvironmentFailure(
                f"evaluation by {call.name!r} failed: {result.text[:500]}", kind="server"
            )
        grade = find_grade(result, hud=compat)
        if grade is not None:
            return grade
        if compat:
            logger.warning("evaluation by %r gave neither grade nor reward; the score is 0", call.name)
            return 0.0
        raise EnvironmentFailure(
            f"evaluation by {call.name!r} gave no grade (grade, reward, score or subscores): "
            f"{result.text[:300] or dict(result.structured)}",
            kind="server",
        )

    def release(self, broken: bool = False) -> None:
        """Let go of the servers: kept for others where the configuration says so and they are sound."""
        session, self.session = self.session, None
        if session is not None and loop.is_current(session.loop):
            from mm_gym.mcp.client import close_session

            loop.spawn(close_session(session, "own" if broken else self._config.servers))
