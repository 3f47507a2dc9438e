"""From messages to tokens, exact for the model's own chat template."""

from agents.chat.renderer import ChatRenderer

__all__ = ["ChatRenderer"]
