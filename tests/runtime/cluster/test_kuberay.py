"""The manifests for KubeRay: against its own schema, and what they say of the command.

`KUBERAY_CRDS` names the folder `ray-operator/config/crd/bases` of a checkout of ray-project/kuberay
(v1.3 or newer). Its files are not in this repository.
"""

import os
import shlex
from pathlib import Path

import pytest

from offbook.runtime.cluster import __main__ as command

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

FOLDER = Path(__file__).parents[3] / "examples" / "cluster"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
OURS = ["python", "-m", "offbook.runtime.cluster"]


def manifest(name):
    return yaml.safe_load((FOLDER / name).read_text())


def containers():
    """The containers of the head and of the workers."""
    spec = manifest("raycluster.yaml")["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    return [group["template"]["spec"]["containers"][0] for group in groups]


def strict(schema):
    """The schema, refusing fields that it does not know, as `kubectl --validate=strict` does."""
    if isinstance(schema, dict):
        changed = {key: strict(value) for key, value in schema.items()}
        is_open = schema.get("x-kubernetes-preserve-unknown-fields")
        if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
            if not is_open:
                changed.setdefault("additionalProperties", False)
        return changed
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
def schema_of():
    """The schema of a kind, of KubeRay's custom resource definitions."""
    folder = os.environ.get("KUBERAY_CRDS")
    if folder is None:
        pytest.skip("KUBERAY_CRDS does not name KubeRay's custom resource definitions")
    found = {}
    for path in Path(folder).glob("ray.io_*.yaml"):
        definition = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))[
            "spec"
        ]
        for version in definition["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            found[f"ray.io/{version['name']}", definition["names"]["kind"]] = schema
    return lambda one: found[one["apiVersion"], one["kind"]]


@pytest.mark.parametrize("name", FILES)
def test_a_manifest_is_what_the_schema_of_kuberay_asks_for(schema_of, name):
    one = manifest(name)
    jsonschema.Draft7Validator(schema_of(one)).validate(one)


def test_the_schema_refuses_a_field_that_it_does_not_know(schema_of):
    one = manifest("raycluster.yaml")
    container = one["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    container["lifecycle"]["prestop"] = container["lifecycle"].pop("preStop")
    with pytest.raises(jsonschema.ValidationError, match="prestop"):
        jsonschema.Draft7Validator(schema_of(one)).validate(one)


def test_the_commands_of_the_manifests_are_accepted(monkeypatch):
    names = {one["name"]: one.get("value") for one in containers()[1]["env"]}
    monkeypatch.setenv("OFFBOOK_CLUSTER", names["OFFBOOK_CLUSTER"])
    words = [containers()[1]["lifecycle"]["preStop"]["exec"]["command"]]
    words += [
        shlex.split(manifest(f"{name}.yaml")["spec"]["entrypoint"]) for name in ("start", "roll")
    ]
    parsed = []
    for one in words:
        assert one[:3] == OURS
        parsed.append(command._parser().parse_args(one[3:]))
    drain, start, roll = parsed
    assert (drain.word, drain.here, drain.replace, drain.name) == ("drain", True, True, "shop")
    assert (start.factory, start.hosts, start.version) == ("shop:host", 8, "1")
    assert (roll.word, roll.version) == ("roll", "2")


def test_a_pod_that_ends_has_time_to_drain_and_each_container_has_probes():
    spec = manifest("raycluster.yaml")["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    words = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    timeout = float(words[words.index("--timeout") + 1])
    ending = 20  # for the answer of a host that drains, and for its end
    assert spec["terminationGracePeriodSeconds"] > timeout + ending
    for one in containers():
        assert {"readinessProbe", "livenessProbe"} <= one.keys()
        assert {each["name"] for each in one["env"]} >= {"STORE", "RAY_AUTH_MODE"}


def test_the_jobs_run_on_the_nodes_of_the_cluster():
    cluster = manifest("raycluster.yaml")["metadata"]["name"]
    for name in ("start.yaml", "roll.yaml"):
        assert manifest(name)["spec"]["clusterSelector"] == {"ray.io/cluster": cluster}
