from controlplane.testbed import Cluster
def test_fails(cluster: Cluster) -> None:
    assert cluster.namespace == "x"
