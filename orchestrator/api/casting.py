"""What a role comes to for the workers of one order: endpoint, keys, fallback, what is inherited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.api import endpoint as endpoints
from orchestrator.api.order import Order
from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.resolve import MODEL, Asked, given
from orchestrator.fleet.role import Fallback, Role
from orchestrator.fleet.spec import Endpoint, EndpointKind, WorkerSpec
from orchestrator.store.paths import FleetPaths
from orchestrator.store.redact import KEY_VARIABLE

if TYPE_CHECKING:
    from orchestrator.hermes.inherit import Inheritance
    from orchestrator.hermes.install import HermesInstall


@dataclass(frozen=True, slots=True)
class Cast:
    """A role, checked against this machine: nothing is made yet."""

    role: Role
    endpoint: Endpoint
    """The rehearsal model has no address yet."""
    key: str = field(default="", repr=False)
    fallback: tuple[Endpoint, ...] = ()
    keys: tuple[str, ...] = field(default=(), repr=False)
    """Of the fallback, in its order."""
    inherited: Inheritance | None = None
    """None for a profile that the user had before."""
    said: tuple[str, ...] = ()

    def spec(self, paths: FleetPaths, planned: WorkerSpec, *, choose_port: bool = True) -> WorkerSpec:
        """Return the spec with what the role adds to it; see `endpoint.addressed`."""
        if planned.user_profile:
            return planned
        servers = self.inherited.servers if self.inherited and planned.toolsets else ()
        return replace(
            planned,
            toolsets=tuple(dict.fromkeys((*planned.toolsets, *servers))),
            fallback=tuple(
                fallback_addressed(paths, each, choose_port=choose_port) for each in self.fallback
            ),
            max_tokens=self.role.max_tokens,
            temperature=self.role.temperature,
        )

    def variables(self, spec: WorkerSpec) -> dict[str, str]:
        """Return the secrets for a worker's `env` file, under names that Hermes strips from its tools."""
        from orchestrator.hermes.config import fallback_variable

        held = {fallback_variable(spec, n): key for n, key in enumerate(self.keys)}
        own = {KEY_VARIABLE: self.key} if self.key else {}
        mcp = self.inherited.secrets if self.inherited else {}
        return {**own, **{name: key for name, key in held.items() if name and key}, **mcp}

    def config(self) -> dict[str, Any]:
        """Return what the role lays over the configuration of a worker's own profile."""
        from orchestrator.hermes.config import role_config

        inherited = self.inherited
        return role_config(
            self.role,
            disabled=inherited.disabled if inherited else (),
            mcp=inherited.mcp if inherited else None,
        )


class Casting:
    """Checks roles for an order; servers that several roles share are asked once."""

    def __init__(self, env: Mapping[str, str], order: Order, install: HermesInstall, root: Path) -> None:
        self._env, self._order, self._install, self._root = env, order, install, root
        self._chosen: dict[Asked, endpoints.Chosen] = {}

    def cast(self, role: Role) -> Cast:
        """Raises NotReady when the endpoint does not answer, UsageError for what the role has wrong."""
        from orchestrator.hermes.inherit import read_inheritance
        from orchestrator.hermes.toolsets import check_toolsets

        inherited = read_inheritance(role, self._root, self._install, self._env)
        where = "--toolsets" if self._order.toolsets else f"role {role.name}"
        wanted = self._order.toolsets or role.toolsets
        check_toolsets(wanted, self._install, also=inherited.servers, where=where)
        main = self._main(role)
        found = [self._fallback(role, each, main) for each in role.fallback]
        saved = [(each, main.key, "") for each in main.fallback if not role.fallback]
        said = [*main.said, *inherited.notes, *(note for _, _, note in found if note)]
        return Cast(
            role,
            main.endpoint,
            main.key,
            tuple(endpoint for endpoint, _, _ in (*found, *saved)),
            tuple(key for _, key, _ in (*found, *saved)),
            inherited,
            tuple(said),
        )

    def _main(self, role: Role) -> endpoints.Chosen:
        """Return the endpoint of a role: what the command names comes first, then the role, then the rest."""
        flags = self._order.asked
        own = not flags.url and bool(role.endpoint)
        asked = replace(flags, url=flags.url or role.endpoint)
        try:
            found, _ = endpoints.find(self._env, asked)
            if found.kind is not EndpointKind.REHEARSAL:
                key_env = flags.key_env or ("" if flags.url else role.key_env)
                asked = Asked(asked.url, flags.model or role.model, key_env)
            return self._answer(asked, f"role {role.name}" if own else "")
        except UsageError as error:
            if not own:
                raise
            raise UsageError(f"role {role.name}: {error}", hint=error.hint) from error

    def _answer(self, asked: Asked, source: str) -> endpoints.Chosen:
        if asked not in self._chosen:
            self._chosen[asked] = endpoints.choose(self._env, asked)
        chosen = self._chosen[asked]
        if not source:
            return chosen
        told = chosen.endpoint.source.replace("flags", source, 1)
        return replace(chosen, endpoint=replace(chosen.endpoint, source=told))

    def _fallback(self, role: Role, wanted: Fallback, main: endpoints.Chosen) -> tuple[Endpoint, str, str]:
        """Return a fallback, its key, and what a person should hear: it may be down just now."""
        source = f"role {role.name}"
        if not wanted.endpoint:
            same = given(replace(main.endpoint, model=wanted.model, source=source), MODEL)
            return self._asked(role, same, main.key)
        try:
            found, _ = endpoints.find(self._env, Asked(wanted.endpoint))
            if found.kind is EndpointKind.REHEARSAL:
                return replace(found, model=wanted.model, source=source), "", ""
            found, _ = endpoints.find(self._env, Asked(wanted.endpoint, wanted.model, wanted.key_env))
        except UsageError as error:
            raise UsageError(f"role {role.name}: fallback: {error}", hint=error.hint) from error
        return self._asked(role, replace(found, source=source), "")

    def _asked(self, role: Role, endpoint: Endpoint, key: str) -> tuple[Endpoint, str, str]:
        from orchestrator.health.endpoint import key_value

        if endpoint.kind is EndpointKind.REHEARSAL:
            return endpoint, "", ""
        try:
            answer = endpoints.checked(replace(endpoint, context_length=0), self._env, [])
            return answer.endpoint, answer.key, ""
        except NotReady as error:
            note = f"role {role.name}: the fallback {endpoint.model} at {endpoint.base_url} cannot be used now: {error}"
            return endpoint, key or key_value(endpoint, self._env), note


def fallback_addressed(paths: FleetPaths, endpoint: Endpoint, *, choose_port: bool = True) -> Endpoint:
    """Return a fallback with an address; the rehearsal model keeps the name that it is asked by."""
    if endpoint.kind is not EndpointKind.REHEARSAL:
        return endpoint
    return replace(endpoints.addressed(paths, endpoint, choose_port=choose_port), model=endpoint.model)
