"""Computer use in a real Chromium: a browser layer, action dialects, tasks and two environments.

Nothing here is imported by `import mm_gym`; a browser starts with the first `reset`.
"""
