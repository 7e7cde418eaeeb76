"""A server that asks who is there, and over TLS."""

import subprocess

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
def certificates(tmp_path_factory):
    """A folder with certificates of 127.0.0.1 and of another host, each its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    for name, address in (("ours", "IP:127.0.0.1"), ("elsewhere", "DNS:elsewhere")):
        subprocess.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout {0}.key -out {0}.crt -days 2 "
            "-subj /CN={0} -addext subjectAltName={1} && cat {0}.key {0}.crt > {0}.pem".format(
                name, address
            ),
            shell=True,
            check=True,
            cwd=str(folder),
            stderr=subprocess.DEVNULL,
        )
    return folder


@pytest.fixture
def secure(certificates, tmp_path):
    """Starts a server with one of the certificates."""
    started = []

    def start(name):
        started.append(ZooKeeper(tmp_path, keystore=certificates / (name + ".pem")))
        return started[-1].secure_hosts

    yield start
    for server in started:
        server.stop()


def test_tls_trusts_the_named_authority_alone(secure, certificates, monkeypatch):
    monkeypatch.setattr("semisync.cluster.zookeeper.connection.CONNECT_WITHIN", 3.0)
    hosts = secure("ours")
    client = Connection(hosts, access=Access(ca=str(certificates / "ours.crt")))
    client.create("/a", b"1")
    assert client.get("/a")[0] == b"1"
    client.close()
    with pytest.raises(BadInput, match="no ZooKeeper at .* accepts us"):
        Connection(hosts, access=Access(ca=str(certificates / "elsewhere.crt")))


def test_tls_refuses_a_server_with_another_hosts_certificate(secure, certificates, monkeypatch):
    monkeypatch.setattr("semisync.cluster.zookeeper.connection.CONNECT_WITHIN", 3.0)
    with pytest.raises(BadInput, match="check the address, its certificate"):
        Connection(secure("elsewhere"), access=Access(ca=str(certificates / "elsewhere.crt")))
