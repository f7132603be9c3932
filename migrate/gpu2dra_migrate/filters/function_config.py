"""The functionConfig of a KRM function: a ConversionPolicy, a Config as in `.gpu2dra.yaml`, or a ConfigMap of texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpu2dra import Keep, Object, Options
from gpu2dra_migrate.config import API_VERSION, Config
from gpu2dra_migrate.config_schema import config_in, misplaced
from gpu2dra_migrate.policy_file import load_policy, policy_in
from gpu2dra_migrate.text.nodes import Document

PLACE = Path("functionConfig")
"""What errors name in the place of a file; paths in the configuration are read from the working folder."""
_BASE = "/functionConfig"
_KEYS = ("target", "tolerations", "schedulers", "policy", "keep")
_TRUTH = {"true": True, "false": False}


def options_of(document: Document, data: Object, options: Options) -> Options:
    """Return the options of a run: what the functionConfig of a ResourceList says, over `options`.

    Raises ConfigError that names the place for a configuration that cannot be used.
    """
    given = data.get("functionConfig")
    if given is None:
        return options
    kind = given.get("kind") if isinstance(given, dict) else None
    if kind == "ConversionPolicy":
        return replace(options, policy=policy_in(PLACE, document, given, _BASE))
    if kind == "Config":
        settings = {key: value for key, value in given.items() if key != "metadata"}  # a Config in a file has none
        return _over(options, config_in(PLACE, document, settings, _BASE), settings)
    if kind == "ConfigMap":
        return _of_texts(document, given.get("data"), options)
    text = f"this is {kind or 'no object'}; write a ConversionPolicy, a Config or a ConfigMap"
    raise misplaced(PLACE, document, f"{_BASE}/kind", text)


def _over(options: Options, config: Config, settings: Object) -> Options:
    """Return `options` with what `settings` name taken from `config`."""
    said = config.options()
    return replace(
        options,
        api_version=said.api_version if "target" in settings else options.api_version,
        tolerations=said.tolerations if "tolerations" in settings else options.tolerations,
        schedulers=options.schedulers | said.schedulers,
        policy=said.policy or options.policy,
    )


def _of_texts(document: Document, texts: Any, options: Options) -> Options:
    """Return the options that the data of a ConfigMap says; lists are parted by commas."""
    settings: Object = {"apiVersion": API_VERSION, "kind": "Config"}
    base = f"{_BASE}/data"
    for key, value in texts.items() if isinstance(texts, dict) else ():
        place = f"{base}/{key}"
        if key not in _KEYS:
            raise misplaced(PLACE, document, place, f"unknown key; the keys are {', '.join(_KEYS)}")
        if not isinstance(value, str):
            raise misplaced(PLACE, document, place, "the data of a ConfigMap are texts; quote it")
        if key == "tolerations":
            if value.lower() not in _TRUTH:
                raise misplaced(PLACE, document, place, "write true or false")
            settings[key] = _TRUTH[value.lower()]
        elif key == "schedulers":
            settings[key] = _listed(value)
        elif key == "keep":
            options = replace(options, keep=_keep(document, place, value))
        elif key == "policy":
            options = replace(options, policy=load_policy(Path(value)))
        else:
            settings[key] = value
    return _over(options, config_in(PLACE, document, settings, base), settings)


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _keep(document: Document, place: str, text: str) -> tuple[Keep, ...]:
    try:
        return tuple(Keep(each) for each in _listed(text))
    except ValueError:
        known = ", ".join(Keep)
        raise misplaced(PLACE, document, place, f"write one of {known}, or several with commas between") from None
