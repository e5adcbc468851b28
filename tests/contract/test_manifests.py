"""The manifests in container/kubernetes are of the schema, and ask for what nookd needs and no more."""

import json
import re
import subprocess

import pytest
import yaml

from nook import BINARY, ROOT

FOLDER = ROOT / "container/kubernetes"
VERSION = "1.31"
KEPT = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID"}


def documents():
    return [(path.name, doc) for path in sorted(FOLDER.glob("*.yaml"))
            for doc in yaml.safe_load_all(path.read_text())]


def pods():
    """(file, pod's metadata, pod's spec) of all that become pods."""
    for name, doc in documents():
        if doc["kind"] == "Pod":
            yield name, doc["metadata"], doc["spec"]
        elif doc["kind"] == "Sandbox":
            template = doc["spec"]["podTemplate"]
            yield name, template["metadata"], template["spec"]


def test_each_document_is_of_its_schema():
    validate = pytest.importorskip("kubernetes_validate").validate
    seen = set()
    for name, doc in documents():
        seen.add(doc["kind"])
        if doc["kind"] == "Sandbox":  # no schema comes with Kubernetes; what it wraps is a pod
            assert doc["apiVersion"] == "agents.x-k8s.io/v1beta1"
            assert set(doc["spec"]) <= {"podTemplate", "service", "volumeClaimTemplates",
                                        "shutdownTime", "shutdownPolicy"}
            doc = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sandbox"},
                   "spec": doc["spec"]["podTemplate"]["spec"]}
        validate(doc, VERSION, strict=True)
    assert seen == {"Pod", "RuntimeClass", "NetworkPolicy", "Sandbox"}, name


def test_a_pod_has_the_least_that_nookd_needs():
    classes = {doc["metadata"]["name"] for _, doc in documents() if doc["kind"] == "RuntimeClass"}
    for name, metadata, spec in pods():
        assert spec["runtimeClassName"] in classes, name
        assert spec["automountServiceAccountToken"] is False, name
        container, = spec["containers"]
        security = container["securityContext"]
        assert security["capabilities"]["drop"] == ["ALL"], name
        assert set(security["capabilities"]["add"]) == KEPT, name
        assert security["allowPrivilegeEscalation"] is False, name
        assert security["readOnlyRootFilesystem"] is True, name
        assert set(container["resources"]["limits"]) >= {"cpu", "memory", "ephemeral-storage"}
        assert metadata["labels"] == {"app.kubernetes.io/name": "sandbox"}, name


def test_every_volume_is_mounted_and_every_root_can_be_written():
    for name, _, spec in pods():
        container, = spec["containers"]
        mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        volumes = {v["name"]: v for v in spec["volumes"]}
        assert set(mounts) == set(volumes), name
        assert {"/workspace", "/output", "/home/sandbox", "/tmp", "/run"} <= set(mounts.values())
        assert volumes["token"]["secret"]["defaultMode"] == 0o400
        assert "fsGroup" not in spec.get("securityContext", {}), "it opens the token to a group"


def test_the_arguments_and_probes_are_nookds_own():
    options = {"--" + key for key in json.loads(subprocess.run(
        [BINARY, "--print-config"], capture_output=True, check=True).stdout)}
    routes = {row["path"] for row in json.loads(subprocess.run(
        [BINARY, "--print-routes"], capture_output=True, check=True).stdout)}
    for name, _, spec in pods():
        container, = spec["containers"]
        assert {word for word in container["args"] if word.startswith("--")} <= options, name
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["path"] in routes, name


def test_the_network_is_denied_unless_said():
    policies = {doc["metadata"]["name"]: doc["spec"] for _, doc in documents()
                if doc["kind"] == "NetworkPolicy"}
    closed = policies["sandbox-deny-all"]
    assert set(closed["policyTypes"]) == {"Ingress", "Egress"}
    assert "ingress" not in closed and "egress" not in closed
    assert all("egress" not in spec for spec in policies.values())


def test_the_containerfile_has_its_targets():
    text = (ROOT / "container/Containerfile").read_text()
    assert re.findall(r"^FROM \S+ AS (\w+)$", text, re.M) == ["builder", "nookd", "sandbox"]
    assert re.search(r"^HEALTHCHECK .*\[\"/sbin/nookd\", \"health\"\]$", text, re.M)
    assert text.count('ENTRYPOINT ["/sbin/nookd", "serve"]') == 2
