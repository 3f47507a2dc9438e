"""Other projects' environments, unchanged, under the contract of `mm_gym.ChatEnv`."""
