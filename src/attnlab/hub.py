"""Names on the Hugging Face hub: told from missing folders, and asked for once, since its client retries long."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from attnlab.errors import PretrainedError
from attnlab.inputs import expand_path, suggest_file

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
"""What may be a name on the hub."""
CONFIGS = ("config.json", "tokenizer_config.json")
"""The hub's client has one of these in its cache for a model or a tokenizer that was downloaded before."""
TIMEOUT = 5.0
"""Seconds to wait for an answer of the hub."""


def check_folder_or_name(name: str | Path) -> None:
    """Refuse a folder that does not exist, unless this may be a name on the hub; takes no time and no network.

    OWNER/NAME that is no folder is a name on the hub, also if there is a folder OWNER here, as in transformers;
    ./OWNER/NAME is always a folder.
    """
    folder = expand_path(name)
    if folder.exists():
        return
    if not HUB_NAME.fullmatch(str(name)):
        raise PretrainedError(
            f"there is no folder '{name}'{suggest_file(folder)} (a name on the hub would be 'NAME' or 'OWNER/NAME')"
        )


def explain_assumption(name: str | Path) -> str:
    """Say that a name was taken for one on the hub, since it is no folder; empty for a folder."""
    folder, text = expand_path(name), str(name)
    if folder.exists() or not HUB_NAME.fullmatch(text):
        return ""
    has_owner = "/" in text and folder.parent.is_dir()
    hint = suggest_file(folder) if has_owner else ""
    advice = f"; ./{text} would be a folder" if has_owner else ""
    joint = " It" if hint.endswith("?") else "; it"
    return f"there is no folder '{text}'{hint}{joint} was taken for a name on the hub{advice}"


def check_available(name: str | Path) -> None:
    """Refuse a name that is neither a folder nor downloaded if the hub, which may have it, cannot be reached."""
    check_folder_or_name(name)
    if expand_path(name).exists() or is_downloaded(str(name)):
        return
    if problem := find_connection_problem(str(name)):
        raise PretrainedError(f"{explain_assumption(name)}. The hub cannot be reached ({problem})")


def is_downloaded(name: str) -> bool:
    """Tell whether a model or a tokenizer is in the cache of the hub's client."""
    # Imported here because the client takes a fifth of a second, and --help must not take it.
    from huggingface_hub import try_to_load_from_cache

    try:
        return any(isinstance(try_to_load_from_cache(name, file), str) for file in CONFIGS)
    except ValueError:  # a name that the client refuses
        return False


def find_connection_problem(name: str, *, is_dataset: bool = False) -> str:
    """Return why the hub cannot be reached, or an empty string; one request, with the client's endpoint and proxies.

    Every answer will do, also that there is no such name: the client then says so without a retry. Offline, it only
    looks into its cache.
    """
    from huggingface_hub import constants, get_session, hf_hub_url
    from huggingface_hub.errors import OfflineModeIsEnabled

    file, kind = ("README.md", "dataset") if is_dataset else (CONFIGS[0], "model")
    try:
        status = get_session().head(hf_hub_url(name, file, repo_type=kind), timeout=TIMEOUT).status_code
    except (OfflineModeIsEnabled, ValueError):  # a ValueError is about the name, which the client refuses again
        return ""
    except Exception as error:  # of the library for HTTP, which is the client's own choice
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        return f"{urlsplit(constants.ENDPOINT).hostname}: {reason}"
    # The client retries what a server, or a proxy, that is out of order answers.
    return f"it answers with status {status}" if status >= 500 else ""
