"""Turns that are interrupted between two steps of training: what was sampled is kept and gone on with."""

from __future__ import annotations

import asyncio

import pytest
from faulty_env import ENV_ID
from scripted import FIRST, STOP, CharRenderer, ScriptedPolicy

from agents.engine import RolloutEngine
from agents.metrics import rollout_metrics
from agents.types import Request, Response, Task, Trajectory


class TypingPolicy(ScriptedPolicy):
    """Types `words` a character at a time and notes each; holds still for good after `holds_at` of them."""

    def __init__(self, words: str = "a long answer", holds_at: int | None = None) -> None:
        super().__init__()
        self.words = words
        self.holds_at = holds_at
        self.typed = 0

    async def generate(self, request: Request) -> Response:
        self.requests.append(request)
        ids = [*(FIRST + ord(c) for c in self.words), STOP][request.sampled :]
        taken: list[tuple[int, float]] = []
        for token_id in ids:
            if self.typed == self.holds_at:
                await asyncio.Event().wait()
            taken.append((token_id, -0.5 - self.version))
            if request.progress is not None:
                request.progress.append(taken[-1])
            self.typed += 1
            await asyncio.sleep(0)
        return Response([i for i, _ in taken], [p for _, p in taken])


def interrupted(policy: TypingPolicy, characters: int, times: int = 1) -> Trajectory:
    """An episode whose first turn is interrupted `times` times, each time after `characters` more."""
    with RolloutEngine(policy, CharRenderer()) as engine:
        gate = engine.new_gate()
        episodes: list[asyncio.Task[Trajectory]] = []

        async def a_part(last: bool) -> Trajectory | None:
            gate.set()
            if not episodes:
                episodes.append(engine.begin(Task(ENV_ID, {"length": 1}), 0, gate))
            if last:
                return await episodes[0]
            policy.holds_at = policy.typed + characters
            while policy.typed < policy.holds_at and not episodes[0].done():
                await asyncio.sleep(0)
            gate.clear()
            engine.interrupt(gate)
            policy.holds_at = None
            return None

        for _ in range(times):
            engine.wait(engine.run_exclusively(lambda: a_part(last=False)))
            policy.version += 1
        trajectory = engine.wait(engine.run_exclusively(lambda: a_part(last=True)))
    assert trajectory is not None
    return trajectory


def test_what_was_sampled_of_a_turn_is_kept_with_the_versions_that_sampled_it():
    policy = TypingPolicy()
    trajectory = interrupted(policy, 4, times=2)
    assert trajectory.episode.actions == ["a long answer"]
    (turn,) = trajectory.turns
    assert turn.pieces == [(0, 4), (1, 4), (2, 6)]
    assert turn.policy_version == 0
    assert trajectory.logprobs[turn.start : turn.end] == [-0.5] * 4 + [-1.5] * 4 + [-2.5] * 6
    assert policy.typed == 14, "no id was sampled twice"
    assert [r.sampled for r in policy.requests] == [0, 4, 8]
    assert len({r.max_tokens + r.sampled for r in policy.requests}) == 1
    figures = rollout_metrics([trajectory], version=2)
    assert figures["rollout/all/staleness_max"] == 2.0
    assert figures["rollout/all/mixed_versions"] == 1.0


def test_pieces_of_one_version_are_one():
    policy = TypingPolicy()
    version, policy.version = policy.version, 7
    trajectory = interrupted(policy, 0)
    assert version == 0
    assert [t.pieces for t in trajectory.turns] == [[]]
    assert trajectory.turns[0].policy_version == 8, "nothing was sampled before the interruption"


def test_a_turn_cancelled_after_its_last_id_is_whole():
    policy = TypingPolicy("ok")

    async def holds_at_the_end(request: Request) -> Response:
        policy.requests.append(request)
        assert request.progress is not None
        request.progress.extend([(FIRST + ord("o"), -0.5), (FIRST + ord("k"), -0.5), (STOP, -0.5)])
        policy.typed += 3
        await asyncio.Event().wait()
        raise AssertionError

    policy.generate = holds_at_the_end  # type: ignore[method-assign]
    trajectory = interrupted(policy, 3)
    assert trajectory.episode.actions == ["ok"]
    assert len(policy.requests) == 1, "nothing is asked for again"
    assert trajectory.turns[0].finish_reason == "stop"


def test_a_policy_that_keeps_no_progress_samples_the_turn_again():
    class Forgetful(TypingPolicy):
        async def generate(self, request: Request) -> Response:
            assert request.sampled == 0
            unnoted = Request(request.episode, request.token_ids, request.images, request.max_tokens, 0)
            return await super().generate(unnoted)

    trajectory = interrupted(Forgetful(), 5)
    assert trajectory.episode.actions == ["a long answer"]
    assert trajectory.turns[0].versions == [1]


def test_turns_outside_a_schedule_keep_no_progress():
    policy = TypingPolicy()
    with RolloutEngine(policy, CharRenderer()) as engine:
        engine.collect([Task(ENV_ID, {"length": 1})])
    assert [r.progress for r in policy.requests] == [None]


@pytest.mark.parametrize("times", [1, 3])
def test_the_store_keeps_the_pieces(times, tmp_path):
    from agents.store import TrajectoryStore, read_trajectories

    trajectory = interrupted(TypingPolicy(), 2, times)
    with TrajectoryStore(tmp_path) as store:
        store.append([trajectory], step=1)
    (read,) = read_trajectories(tmp_path)
    assert [t.pieces for t in read.turns] == [t.pieces for t in trajectory.turns]
