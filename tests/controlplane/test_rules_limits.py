"""R6: how much a claim holds, how requests are split over claims, and what else a pod may hold."""

from __future__ import annotations

from collections.abc import Callable

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import (
    GPU,
    claiming,
    codes,
    container,
    convert,
    install,
    names_a_gpu,
    on_node,
    one_gpu,
    pod,
    request,
    template,
)
from gpu2dra import Context

Answer = Callable[[str], None]


def test_r06_requests_per_claim(cluster: Cluster, answer: Answer) -> None:
    """Templates with 32 and with 33 requests."""

    def made(count: int) -> Object:
        return cluster.here(template(f"requests-{count}", *(request(f"r{number}") for number in range(count))))

    assert cluster.client.try_create(made(32)).accepted
    refused = cluster.client.try_create(made(33))
    assert (refused.status, "must have at most 32 items" in refused.object["message"]) == (422, True)
    answer("32 taken, 33 refused")


def test_r06_devices_per_claim(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """One container that asks for 32 and for 33 devices, on a node with 64."""
    machines([gpus.Machine("large", gpus.whole(gpus.H100, 64))])
    most = install(cluster, one_gpu("most", 32))
    assert codes(one_gpu("too-many", 33)) == ["DRA304"]
    # The API takes the number; nothing can ever be allocated for it.
    cluster.client.create(cluster.here(template("thirty-three", request("gpu", 33))))
    assert cluster.outcome(most.object).node == "large"
    devices = scheduling.devices_by_container(cluster.client, most.object)
    assert len(set(devices["main"])) == 32
    too_many = cluster.client.create(cluster.here(claiming("too-many", "thirty-three")))
    scheduling.wait_for_message(cluster.client, too_many, "exceeds the claim limit of 32")
    assert "nodeName" not in cluster.client.read(too_many)["spec"]
    answer("32 allocated; a claim for 33 is taken and never allocated")


def test_r06_split(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """40 containers with a GPU each, and two with 20 each: more than one claim holds, on nodes with 64."""
    machines([gpus.Machine("large", gpus.whole(gpus.H100, 64)), gpus.Machine("other", gpus.whole(gpus.H100, 64))])
    # Each on a node of its own: a scheduler that looks for devices where too few are left tries them in every order.
    many = install(cluster, on_node(pod("many", *(container(f"c{number}", 1) for number in range(40))), "large"))
    halves = install(cluster, on_node(pod("halves", container("a", 20), container("b", 20)), "other"))
    sizes = [[len(each["spec"]["spec"]["devices"]["requests"]) for each in made.templates] for made in (many, halves)]
    assert sizes == [[32, 8], [1, 1]]
    for made, wanted in ((many, [1] * 40), (halves, [20, 20])):
        assert "DRA107" in made.codes
        assert cluster.outcome(made.object).scheduled
        devices = scheduling.devices_by_container(cluster.client, made.object)
        assert [len(set(found)) for found in devices.values()] == wanted
        assert len(set().union(*devices.values())) == 40
    answer("two claims each, bound; 40 devices, none twice")


def test_r06_existing_claims(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A pod that has a claim named `gpu` already, for a MIG slice, and a limit for two whole GPUs."""
    found = [gpus.gpu(0, gpus.H100, "both"), gpus.gpu(1, gpus.H100, "both")]
    slices = [gpus.mig(2, gpus.H100, "both", gpus.H100_MIG["1g.10gb"], 0)]
    machines([gpus.Machine("both", lambda name: [*found, *slices])])
    cluster.client.create(cluster.here(template("own", request("slice", 1, "mig.nvidia.com"))))
    legacy = claiming("holder", "own", {"name": "gpu"})
    legacy["spec"]["containers"][0]["resources"]["limits"] = {GPU: 2}
    known = Context(claim_classes={("ResourceClaimTemplate", "own"): frozenset({"mig.nvidia.com"})})
    made = install(cluster, legacy, context=known)
    assert made.object["spec"]["containers"][0]["resources"] == {
        "claims": [{"name": "gpu"}, {"name": "gpu-2", "request": "main"}]
    }
    assert cluster.outcome(made.object).node == "both"
    devices = scheduling.devices_by_container(cluster.client, made.object)["main"]
    assert [device.name for device in devices] == ["gpu-0", "gpu-1", "gpu-2-mig-1g10gb-19-0"]
    answer("both claims allocated: the slice and the two GPUs")


def test_r06_claim_and_limit(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A container with a claim for the class *and* a limit, which `plan` reports, on a node of the driver."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    cluster.client.create(cluster.here(template("own", request("gpu"))))
    twice = claiming("twice", "own")
    twice["spec"]["containers"][0]["resources"]["limits"] = {GPU: 1}
    known = Context(claim_classes={("ResourceClaimTemplate", "own"): frozenset({"gpu.nvidia.com"})})
    assert codes(twice, context=known) == ["DRA307"]
    found = cluster.outcome(twice)
    assert "Insufficient nvidia.com/gpu" in found.message
    answer("taken; it waits for a node that offers both")


def test_r06_where_claims_cannot_be(cluster: Cluster, answer: Answer) -> None:
    """A limit or a claim in pod-level resources and in an ephemeral container."""
    whole = pod("level", container("main"), resources={"limits": {GPU: 1}})
    assert codes(whole) == ["DRA308"]
    refused = cluster.client.try_create(cluster.here(whole))
    assert (refused.status, "spec.resources" in refused.object["message"]) == (422, True)
    claims = claiming("level", "any", resources={"claims": [{"name": "gpu"}]})
    refused = cluster.client.try_create(cluster.here(claims))
    assert (refused.status, "claims may not be set for Resources at pod-level" in refused.object["message"]) == (
        422,
        True,
    )

    running = cluster.client.create(cluster.here(pod("debugged", container("main"))))
    debugger = {**container("debug", 1), "targetContainerName": "main"}
    assert codes({**running, "spec": {**running["spec"], "ephemeralContainers": [debugger]}}) == ["DRA309"]
    for resources in (debugger["resources"], {"claims": [{"name": "gpu"}]}):
        body = {"spec": {"ephemeralContainers": [{**debugger, "resources": resources}]}}
        path = f"{cluster.client.path_of(running)}/ephemeralcontainers"
        kind = "application/strategic-merge-patch+json"
        refused = cluster.client.call("PATCH", path, body, kind)
        assert (refused.status, "resources" in refused.object["message"]) == (422, True)
    assert not names_a_gpu(convert(one_gpu("plain")).object)
    answer("all refused")
