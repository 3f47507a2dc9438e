"""MCP servers of our own: examples, test parts, and tools for any MCP client."""
