"""vLLM in process: the colocated engine, driven request by request.

Knows vLLM's engine interface. Does not know environments, trajectories or trainers. A turn is submitted
the moment its environment has answered, whatever the other episodes are doing: there is no lockstep.
Sleep, wake-up and the weight push are done here, since the engine is driven here.

vLLM in process takes *collapsed* ids (one pad per image) and expands them itself; what it expanded is
compared with the stream, so that a pad expanded twice can't pass unnoticed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from PIL import Image

from agents.types import FinishReason, GenerationFailure, Request, Response, SamplingParams


class Collapser(Protocol):
    """The part of `agents.ChatRenderer` that is needed here."""

    def collapse(self, token_ids: Any, images: Any = None) -> list[int]: ...


class Lockstep(Protocol):
    """How the ranks of a tensor-parallel group share the leader's commands."""

    leader: bool

    def share(self, commands: Any) -> Any:
        """What the leader passed, on every rank; followers pass None. Blocks until the leader calls."""
        ...


@dataclass(frozen=True)
class _Add:
    key: str
    prompt: dict[str, Any]
    sampling: dict[str, Any]
    stepwise: bool
    """Whether the engine hands out each id when it is sampled."""


@dataclass(frozen=True)
class _Abort:
    key: str


@dataclass
class _Pending:
    request: Request
    future: asyncio.Future[Response]
    loop: asyncio.AbstractEventLoop
    sampled: list[tuple[int, float]]
    """Ids and log-probs so far."""


def vllm_sampling(params: SamplingParams, max_tokens: int, seed: int) -> dict[str, Any]:
    """Our sampling parameters under vLLM's names; log-probs of the sampled id only.

    A ban is a logit bias of -100, the largest that vLLM takes: it leaves a banned id less than e^-80 of
    the mass, and the log-probs, taken after the bias, are those of the softmax over the allowed ids.
    """
    return {
        "n": 1,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "seed": seed % 2**31,
        "max_tokens": max_tokens,
        "stop_token_ids": list(params.stop_token_ids),
        "logit_bias": {token: -100.0 for token in params.banned_token_ids} or None,
        "logprobs": 0,
        "detokenize": False,
    }


def whole_prompts_on_a_cpu() -> dict[str, Any]:
    """Arguments of `LLM` that keep prompts whole where there is no GPU.

    There a request with a seed whose prompt is computed in two parts stops vLLM's engine (0.31: "CPU
    Generator does not use offset").
    """
    import torch

    return {} if torch.cuda.is_available() else {"enable_chunked_prefill": False}


class VLLMPolicy:
    """A policy over a `vllm.LLM` of this process.

    Args:
        llm: Built with `logprobs_mode="processed_logprobs"`, so that log-probs are those of the sampled
            distribution (TRL's trainer builds it so).
        renderer: For the collapsed view of the ids.
        sleep: Put the engine to sleep between collections (it must have been built with
            `enable_sleep_mode=True`).
        lockstep: For tensor parallelism with one process a rank: every rank of the group drives its own
            engine, and all must see the same commands before each step. The leader owns the episodes;
            the others call `follow`.
    """

    def __init__(
        self, llm: Any, renderer: Collapser, *, sleep: bool = False, lockstep: Lockstep | None = None
    ) -> None:
        mode = llm.llm_engine.vllm_config.model_config.logprobs_mode
        if mode != "processed_logprobs":
            raise ValueError(
                f'the vLLM engine reports {mode!r}: build it with logprobs_mode="processed_logprobs", else '
                "log-probabilities are not those of the distribution that was sampled"
            )
        self.version = 0
        self.prompt_tokens = 0
        """Prompt ids of all turns so far."""
        self.cached_tokens = 0
        """Those of them that the prefix cache held."""
        self._llm = llm
        self._renderer = renderer
        self._sleep = sleep
        self._lockstep = lockstep
        self._asleep = False
        self._pending: dict[str, _Pending] = {}
        self._commands: list[_Add | _Abort] = []
        self._wake = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._counter = 0
        self._broken: GenerationFailure | None = None

    # -- Policy ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Wake the engine and start driving it."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._wake_up()
        self._stopping = False
        self._broken = None
        self._thread = threading.Thread(target=self._drive, name="vllm-engine", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Finish what is running, stop driving, and put the engine to sleep where asked."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with self._wake:
            self._stopping = True
            self._wake.notify()
        await asyncio.to_thread(thread.join)
        self._rest()

    async def generate(self, request: Request) -> Response:
        """Sample one turn. A cancelled call aborts the request in the engine."""
        if self._thread is None:
            raise RuntimeError("VLLMPolicy.generate was called outside start() and stop()")
        self._counter += 1
        key = f"{request.episode}#{self._counter}"
        images: list[Image.Image] = list(request.images)
        prompt: dict[str, Any] = {
            "prompt_token_ids": self._renderer.collapse(request.token_ids, request.images)
        }
        if images:
            prompt["multi_modal_data"] = {"image": images}
        sampling = vllm_sampling(request.sampling, request.max_tokens, request.seed + request.sampled)
        loop = asyncio.get_running_loop()
        stepwise = request.progress is not None
        sampled = request.progress if request.progress is not None else []
        pending = _Pending(request, loop.create_future(), loop, sampled)
        add = _Add(key, prompt, sampling, stepwise)
        self._send(add, lambda: self._pending.__setitem__(key, pending))
        try:
            return await pending.future
        except asyncio.CancelledError:
            self._send(_Abort(key), lambda: self._pending.pop(key, None))
            raise

    def _send(self, command: _Add | _Abort, also: Callable[[], Any]) -> None:
        with self._wake:
            if self._broken is not None:
                raise self._broken
            also()
            self._commands.append(command)
            self._wake.notify()

    # -- weights -----------------------------------------------------------------------------------

    def update_weights(self, weights: Iterable[tuple[str, Any]]) -> None:
        """Load new weights under their Hugging Face names, and drop every cache made with the old ones.

        Collective: under sharded training every rank must iterate. Not while episodes are running.
        """
        if self._thread is not None:
            raise RuntimeError("weights can't change while episodes are running: call stop() first")
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        worker = self._llm.llm_engine.model_executor.driver_worker
        worker = getattr(worker, "worker", worker)
        if worker.device.type == "cpu":  # the CPU back end repacks weights: only a full reload goes through
            worker.reload_weights(weights_iterator=((name, tensor.detach()) for name, tensor in weights))
        else:
            model = worker.model_runner.model
            for name, tensor in weights:
                model.load_weights([(name, tensor)])
        self.reset_caches()
        self.version += 1

    def reset_caches(self) -> None:
        """Drop prefix, encoder and processor caches: all hold results of the weights that were."""
        self._llm.reset_prefix_cache()
        self._llm.llm_engine.reset_encoder_cache()
        self._llm.reset_mm_cache()

    def _wake_up(self) -> None:
        if self._asleep:
            self._llm.wake_up()
            self._asleep = False

    def _rest(self) -> None:
        if self._sleep:
            # level 1 keeps the weights on the CPU: a collection without a push in between stays right
            self._llm.sleep(level=1)
            self._asleep = True

    # -- the engine's thread -----------------------------------------------------------------------

    def follow(self) -> None:
        """On a follower of a tensor-parallel group: step with the leader until it dismisses the group."""
        if self._lockstep is None or self._lockstep.leader:
            raise RuntimeError("follow() is for the ranks of a tensor-parallel group that don't lead it")
        self._wake_up()
        engine = self._llm.llm_engine
        while (commands := self._lockstep.share(None)) is not None:
            for command in commands:
                self._apply(engine, command)
            if engine.has_unfinished_requests():
                engine.step()
        self._rest()

    def dismiss(self) -> None:
        """On the leader of a tensor-parallel group, after its last `stop`: let the followers return."""
        if self._lockstep is not None and self._lockstep.leader:
            self._lockstep.share(None)

    def _drive(self) -> None:
        try:
            while self._step():
                pass
        except Exception as error:
            self._fail(GenerationFailure(f"the vLLM engine failed: {error!r}", kind="engine"))

    def _step(self) -> bool:
        """Take in what was asked, run one engine step, hand out what finished; False at the end."""
        engine = self._llm.llm_engine
        commands, stopping = self._next_commands(engine)
        for command in commands:
            self._apply(engine, command)
        if engine.has_unfinished_requests():
            for output in engine.step():
                self._deliver(output)
            return True
        return not stopping

    def _next_commands(self, engine: Any) -> tuple[list[_Add | _Abort], bool]:
        with self._wake:
            while not (self._commands or self._stopping or engine.has_unfinished_requests()):
                self._wake.wait()
            commands, self._commands = self._commands, []
            stopping = self._stopping
        if self._lockstep is not None:
            self._lockstep.share(commands)
        return commands, stopping

    def _apply(self, engine: Any, command: _Add | _Abort) -> None:
        import vllm

        if isinstance(command, _Abort):
            engine.abort_request([command.key])
            return
        kinds = vllm.sampling_params.RequestOutputKind
        kind = kinds.DELTA if command.stepwise else kinds.FINAL_ONLY
        params = vllm.SamplingParams(**command.sampling, output_kind=kind)
        try:
            engine.add_request(command.key, command.prompt, params)
        except Exception as error:  # too long, too many pictures: this request's fault, not the engine's
            self._settle(command.key, GenerationFailure(f"vLLM refused the request: {error}", kind="refused"))

    def _deliver(self, output: Any) -> None:
        """Take in new ids of a turn, and hand over the turn when it is finished."""
        pending = self._pending.get(output.request_id)
        if pending is None:
            return
        if not pending.sampled:
            expanded = list(output.prompt_token_ids)
            if expanded != list(pending.request.token_ids):
                error = expansion_error(pending.request, expanded)
                self._settle(output.request_id, GenerationFailure(error, kind="ids"))
                return
        new = output.outputs[0]
        pending.sampled += [
            (token, entry[token].logprob) for token, entry in zip(new.token_ids, new.logprobs, strict=True)
        ]
        if not output.finished:
            return
        self.prompt_tokens += len(pending.request.token_ids)
        self.cached_tokens += output.num_cached_tokens or 0
        token_ids = [token for token, _ in pending.sampled]
        logprobs = [logprob for _, logprob in pending.sampled]
        self._settle(output.request_id, Response(token_ids, logprobs, finish_reason(new.finish_reason)))

    def _settle(self, key: str, result: Response | Exception) -> None:
        pending = self._pending.pop(key, None)
        if pending is not None:
            pending.loop.call_soon_threadsafe(_resolve, pending.future, result)

    def _fail(self, error: GenerationFailure) -> None:
        with self._wake:
            self._broken = error
            keys = list(self._pending)
            self._commands.clear()
        for key in keys:
            self._settle(key, error)


def _resolve(future: asyncio.Future[Response], result: Response | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def finish_reason(reason: str | None) -> FinishReason:
    """vLLM's finish reason as ours."""
    if reason == "stop":
        return "stop"
    return "length" if reason == "length" else "abort"


def expansion_error(request: Request, expanded: list[int]) -> str:
    """What to say when a back end's expanded ids are not the stream's."""
    ours = list(request.token_ids)
    shorter = min(len(ours), len(expanded))
    at = next((i for i in range(shorter) if ours[i] != expanded[i]), shorter)
    return (
        f"vLLM expanded the prompt to {len(expanded)} ids where the stream has {len(ours)}; they first "
        f"differ at {at}: its image processor is not the renderer's. Load both from the same model folder"
    )
