"""An interaction environment as slime's users write them; it imports nothing of ours."""

from PIL import Image


class GuessEnv:
    """Answers with a picture and a hint until the label is said."""

    def __init__(self, label, max_turns):
        self.label = label
        self.max_turns = max_turns
        self.turn = 0
        self.closed = False

    def reset(self):
        self.turn = 0
        return {}, {}

    def step(self, response_text):
        if response_text == "break":
            raise RuntimeError("the simulator is gone")
        self.turn += 1
        done = self.label in response_text or self.turn >= self.max_turns
        picture = Image.new("RGB", (40, 30), (0, 0, 10 * self.turn))
        observation = {
            "obs_str": f"no, {self.turn}",
            "role": "tool",
            "multi_modal_data": {"image": [picture]},
        }
        return observation, done, {"tool_executed": True}

    def format_observation(self, observation):
        images = [
            {"type": "image", "image": image}
            for group in (observation.get("multi_modal_data") or {}).values()
            for image in group
        ]
        return {
            "role": observation["role"],
            "content": [*images, {"type": "text", "text": observation["obs_str"]}],
        }

    def close(self):
        self.closed = True


def build_env(sample=None, args=None, **_):
    return GuessEnv(str(sample.label), args.max_turns)


async def reward(args, sample, **kwargs):
    return args.bonus * float(str(sample.label) in sample.response)
