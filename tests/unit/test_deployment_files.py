"""Compose, Kubernetes and Prometheus' files agree with the program that they start and scrape.

That they are well-formed is for `make check`: schemas, hadolint and promtool.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from collector.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service.get("build")]
CLUSTER: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "kubernetes" / "collector.yaml").read_text())
)
PODS = [each["spec"]["template"]["spec"] for each in CLUSTER if "template" in each.get("spec", {})]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def setting_names(model: type[BaseModel] = Settings, prefix: str = "COLLECTOR_") -> set[str]:
    names = set()
    for name, field in model.model_fields.items():
        full = prefix + name.upper()
        names.add(full)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= setting_names(field.annotation, f"{full}__")
    return names


def test_there_is_a_service_for_every_part() -> None:
    assert set(SERVICES) == {
        *("mongo", "replica-set", "redis", "prometheus", "grafana"),
        *("migrate", "apply", "api", "worker", "worker-fxcm"),
    }
    assert OURS == ["migrate", "apply", "api", "worker", "worker-fxcm"]
    assert [pod["containers"][0]["args"][0] for pod in PODS] == OURS[1:4]
    assert PODS[0]["initContainers"][0]["args"] == SERVICES["migrate"]["command"]


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_a_setting(service: str) -> None:
    assert set(SERVICES[service]["environment"]) <= setting_names()


def test_every_variable_on_kubernetes_is_a_setting() -> None:
    given = {name for each in CLUSTER for name in each.get("data", ())}
    given |= {one["name"] for pod in PODS for one in pod["containers"][0].get("env", ())}
    assert given <= setting_names()


def test_every_image_has_a_whole_version_and_ours_has_this_one() -> None:
    used = [service["image"] for service in SERVICES.values()]
    used += [pod["containers"][0]["image"] for pod in PODS]
    ours = [image for image in used if image.startswith("collector")]
    assert set(ours) == {f"collector:{VERSION}", f"collector-fxcm:{VERSION}"}
    for image in used:
        assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+(-\w+)?", image), image


@pytest.mark.parametrize("service", OURS)
def test_secrets_reach_every_program(service: str) -> None:
    given = SERVICES[service]
    mounted = {f"/run/secrets/{name}" for name in given["secrets"]}
    assert given["environment"]["COLLECTOR_MONGO_PASSWORD_FILE"] in mounted
    assert "/run/exchange-keys" in {volume.get("target") for volume in binds(service)}
    assert set(given["secrets"]) <= set(COMPOSE["secrets"])


def binds(service: str) -> list[dict[str, Any]]:
    return [volume for volume in SERVICES[service]["volumes"] if isinstance(volume, dict)]


@pytest.mark.parametrize("service", OURS)
def test_a_missing_file_is_not_made_into_a_folder(service: str) -> None:
    assert binds(service)
    for volume in binds(service):
        assert volume["bind"] == {"create_host_path": False}
    short = [volume for volume in SERVICES[service]["volumes"] if isinstance(volume, str)]
    assert not [volume for volume in short if volume.startswith((".", "/"))]


@pytest.mark.parametrize("service", OURS)
def test_containers_can_change_nothing_but_the_lake(service: str) -> None:
    given = SERVICES[service]
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert given["stop_grace_period"] == "90s"


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_container_has_no_rights_of_root_and_a_bounded_log(service: str) -> None:
    given = SERVICES[service]
    assert given["cap_drop"] == ["ALL"]
    assert "cap_add" not in given
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert given["logging"] == {"driver": "local", "options": {"max-size": "10m", "max-file": "3"}}


def test_databases_start_as_their_own_users() -> None:
    """Their images begin as root and change over, for which a container without rights cannot."""
    assert {name: SERVICES[name]["user"] for name in ("mongo", "redis")} == {
        "mongo": "mongodb",
        "redis": "redis",
    }


def test_a_draft_of_ten_years_of_minutes_has_room_in_a_worker() -> None:
    """170 MB (docs/adr/0011), and several at a time; in memory they would count as the worker's."""
    [tmp] = [volume for volume in PODS[-1]["volumes"] if volume["name"] == "tmp"]
    assert "medium" not in tmp["emptyDir"]
    assert tmp["emptyDir"]["sizeLimit"] == "4Gi"


def test_pods_can_change_nothing_and_get_as_long_to_drain() -> None:
    for pod in PODS:
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert PODS[-1]["terminationGracePeriodSeconds"] == 90


def test_nothing_starts_before_there_is_a_primary_and_a_schema() -> None:
    assert SERVICES["migrate"]["depends_on"] == {
        "mongo": {"condition": "service_healthy"},
        "replica-set": {"condition": "service_completed_successfully"},
    }
    for service in ("apply", "api", "worker", "worker-fxcm"):
        assert SERVICES[service]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
        }


def test_workers_can_be_scaled() -> None:
    worker = SERVICES["worker"]
    assert "container_name" not in worker
    assert "ports" not in worker


def test_no_port_is_open_to_the_world() -> None:
    for service in SERVICES.values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


def test_no_secret_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    asked = set(re.findall(r"\$\{[^}]*\}", text))
    assert asked == {"${API_KEYS:?set it in .env}", "${COLLECTOR_COMMIT:-}", "${REDIS_URL:-}"}
    explained = (ROOT / ".env.example").read_text()
    for name in ("API_KEYS", "COLLECTOR_COMMIT", "REDIS_URL"):
        assert re.search(rf"^#?{name}=$", explained, re.MULTILINE)
