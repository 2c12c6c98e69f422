"""The MCP server: tools, resources and prompts of a graph for language models, over stdio and HTTP."""
