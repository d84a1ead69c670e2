"""Kernels measured on a Ray cluster: one of its machines is killed in the middle."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from metadef.cli.main import main
from metadef.diagnostics import MetadefError
from metadef.runtime.host import this_device
from metadef.tuning.cluster import join_cluster, resource_of
from metadef.tuning.search import Progress
from metadef.tuning.tune import tune

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that measures nothing, and two machines that announce this one's device."""
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80 << 20}
    found = Cluster(initialize_head=True, head_node_args=small)
    machines = [
        found.add_node(**small, resources={resource_of(this_device()): 1}) for _ in range(2)
    ]
    found.wait_for_nodes()
    yield found, machines
    found.shutdown()


def test_a_machine_that_dies_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    found, machines = cluster
    storage = tmp_path / "studies.sqlite"
    model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 40)).eval()
    killed = threading.Event()
    seen: list[Progress] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if progress.layer == "schedules" and not killed.is_set():
            killed.set()
            found.remove_node(machines.pop(), allow_graceful=False)

    tuned = tune(
        *(model, (torch.randn(32, 64),)),
        threads=1,
        budget=60,
        trials=7,
        storage=storage,
        cluster=found.address,
        progress=watch,
    )
    assert killed.is_set() and tuned.trials == 7
    said = [
        (p.subject, json.dumps(dict(p.last.choice), sort_keys=True))
        for p in seen
        if p.layer == "schedules" and p.last is not None
    ]
    # The others are decisions of front passes, which are measured here.
    schedules = sum(k.trials for k in tuned.kernels)
    assert len(said) == len(set(said)) == schedules >= 4
    assert all(p.last.failed is None for p in seen if p.last is not None)


def test_a_device_that_nobody_announces(cluster: Any) -> None:
    import dataclasses

    found, _ = cluster
    other = dataclasses.replace(this_device(), name="another", cores=77, threads=77)
    message = (
        f"expected a machine that announces the device 'another'.*{resource_of(this_device())}"
    )
    with pytest.raises(MetadefError, match=message), join_cluster(found.address, other):
        pass


def test_no_cluster_at_an_address() -> None:
    with (
        pytest.raises(MetadefError, match="cluster '127.0.0.1:1': expected a Ray cluster there"),
        join_cluster("127.0.0.1:1", this_device()),
    ):
        pass


def test_a_machine_announces_only_what_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "127.0.0.1:1", "--device", "arm-cortex-a72"]) == 1
    assert "its code needs a cpu of aarch64" in capsys.readouterr().err
