"""The command com-viewer."""
