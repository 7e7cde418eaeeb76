"""A server that asks who is there, and over TLS."""

import pytest

from semisync.cluster.zookeeper.client import Forbidden
from semisync.cluster.zookeeper.connection import Access, Connection, read_auth
from semisync.common.errors import BadInput, UsageError
from tests.support.zookeeper import ZooKeeper


def test_what_a_user_makes_is_the_users_alone(server):
    hosts = server.hosts + "/access"
    Connection(hosts).close()
    mine = Connection(hosts, access=Access(auth="me:secret"))
    mine.create("/job/plan", b"1")
    stranger = Connection(hosts)
    other = Connection(hosts, access=Access(auth="me:wrong"))
    for client in (stranger, other):
        for call in (client.get, client.children, lambda path, c=client: c.put(path, b"", -1)):
            with pytest.raises(Forbidden):
                call("/job/plan")
        client.close()
    assert mine.get("/job/plan")[0] == b"1"
    mine.close()


def test_the_password_is_read_from_a_file_that_only_its_owner_can_read(tmp_path):
    file = tmp_path / "auth"
    file.write_text("me:secret:with:colons\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_auth(str(file))
    file.chmod(0o600)
    assert read_auth(str(file)) == "me:secret:with:colons"
    for wrong in ("me", ":secret", "me:", "", "a:b\nc:d"):
        file.write_text(wrong)
        with pytest.raises(BadInput, match="USER:PASSWORD") as error:
            read_auth(str(file))
        assert "secret" not in str(error.value)


@pytest.fixture(scope="module")
def secure_hosts(certificates, tmp_path_factory):
    """Of a server that shows our certificate."""
    started = ZooKeeper(tmp_path_factory.mktemp("secure"), keystore=certificates / "ours.pem")
    yield started.secure_hosts
    started.stop()


@pytest.mark.long
def test_tls_trusts_the_named_authority_alone(secure_hosts, certificates, monkeypatch):
    client = Connection(secure_hosts, access=Access(ca=str(certificates / "ours.crt")))
    client.create("/a", b"1")
    assert client.get("/a")[0] == b"1"
    client.close()
    monkeypatch.setattr("semisync.cluster.zookeeper.connection.CONNECT_WITHIN", 3.0)
    with pytest.raises(BadInput, match="no ZooKeeper at .* accepts us"):
        Connection(secure_hosts, access=Access(ca=str(certificates / "other.crt")))


def test_tls_refuses_a_certificate_of_another_host(secure_hosts, certificates, monkeypatch):
    monkeypatch.setattr("semisync.cluster.zookeeper.connection.CONNECT_WITHIN", 3.0)
    hosts = secure_hosts.replace("127.0.0.1", "localhost")
    with pytest.raises(BadInput, match="check the address, its certificate"):
        Connection(hosts, access=Access(ca=str(certificates / "ours.crt")))
