"""From messages to tokens, exact for the model's own chat template.

`ChatRenderer` is what the rest uses; `python -m agents.chat MODEL_OR_PATH` says what it found.
"""

from agents.chat.load import load_processor
from agents.chat.renderer import ChatRenderer
from agents.chat.template import RenderError, TemplateRefused

__all__ = ["ChatRenderer", "RenderError", "TemplateRefused", "load_processor"]
