"""Calls of services that take long, while the caller goes on."""


class ServiceCaller:
    """Clients of one node's services.

    Args:
        node: Calls.
        until: until(condition, what) waits.
        server: Name of the node that serves.
    """

    def __init__(self, node, until, server):
        self._node, self._until, self._server, self._clients = node, until, server, {}

    def begin(self, kind, name, /, **fields):
        """Future of an answer."""
        if name not in self._clients:
            self._clients[name] = self._node.create_client(
                kind, f"{self._server}/{name}"
            )
        client = self._clients[name]
        self._until(client.service_is_ready, f"service {name}")
        return client.call_async(kind.Request(**fields))
