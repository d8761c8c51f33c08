"""One call of a webhook.

The request goes to the IP address that was just checked, whatever the name resolves to by now;
without redirects, without proxies. A secret is sent only to its webhook.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import httpx
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE, PROTOCOL_VERSION_1_0, VERSION_HEADER
from google.protobuf.json_format import MessageToDict

from .configs import Secrets
from .policy import Target, WebhookPolicy, WebhookRefused

if TYPE_CHECKING:
    import ssl

    from a2a.types import a2a_pb2 as pb

    from .configs import Hook

__all__ = ["WebhookSender"]

_TOKEN: Final = "X-A2A-Notification-Token"  # noqa: S105 -- the name of a header


class WebhookSender:
    """Calls webhooks. `verify` checks certificates."""

    def __init__(
        self, policy: WebhookPolicy, secrets: Secrets, *, verify: ssl.SSLContext | bool = True
    ) -> None:
        self._policy = policy
        self._secrets = secrets
        # No connection is reused: it belongs to an IP address, and two names may share one.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=policy.timeout,
            limits=limits,
            verify=verify,
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def send(self, hook: Hook, update: pb.StreamResponse) -> str:
        """Call it once. Returns the reason of a failure, or an empty string."""
        token, credentials = (
            self._secrets.unlock(hook.token),
            self._secrets.unlock(hook.credentials),
        )
        if token is None or credentials is None:
            return "its secrets were locked with another key"
        headers = {"Content-Type": A2A_JSON_MEDIA_TYPE, VERSION_HEADER: PROTOCOL_VERSION_1_0}
        if token:
            headers[_TOKEN] = token
        if credentials:
            headers["Authorization"] = f"{hook.scheme or 'Bearer'} {credentials}"
        try:
            async with asyncio.timeout(self._policy.timeout):
                target = await self._policy.check(hook.url)
                return await self._post(target, headers, json.dumps(MessageToDict(update)).encode())
        except WebhookRefused as refused:
            return str(refused)
        except TimeoutError:
            return f"it has not answered within {self._policy.timeout:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return type(error).__name__

    async def _post(self, target: Target, headers: dict[str, str], body: bytes) -> str:
        host = f"[{target.address}]" if ":" in target.address else target.address
        usual = target.port == (443 if target.scheme == "https" else 80)
        named = f"[{target.host}]" if ":" in target.host else target.host
        request = self._client.build_request(
            "POST",
            f"{target.scheme}://{host}:{target.port}{target.path}",
            headers={**headers, "Host": named if usual else f"{named}:{target.port}"},
            content=body,
            extensions={"sni_hostname": target.host},
        )
        response = await self._client.send(request, stream=True)
        try:
            return "" if response.is_success else f"it has answered {response.status_code}"
        finally:
            await response.aclose()  # the body of the response is ignored
