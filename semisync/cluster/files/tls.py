"""TLS among the nodes of a job: both sides show a certificate of one authority.

The authority (CA) is the job's or the team's own, not one of the web's: with it alone a certificate
is trusted. A node's certificate names the host by which others reach it.
"""

import ssl
from typing import NamedTuple

from semisync.common.errors import UsageError


class Tls(NamedTuple):
    """PEM files: this node's certificate and its private key, and the authority's certificate.

    Args:
        certificate: path of this node's certificate.
        private_key: path of its private key.
        authority: path of the authority's certificate.

    Examples:
        >>> tls = files.Tls("node.pem", "node.key", "ca.pem")  # for Node(..., tls=tls)
    """

    certificate: str
    private_key: str
    authority: str

    def server(self) -> ssl.SSLContext:
        """For a node that listens.

        Returns:
            An ssl.SSLContext.

        Raises:
            UsageError: a file is missing or is not what it should be.
        """
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self) -> ssl.SSLContext:
        """For a node that asks; it checks the name of the host.

        Returns:
            An ssl.SSLContext.

        Raises:
            UsageError: a file is missing or is not what it should be.
        """
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.private_key, password=_refuse_password)
            context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                "no TLS with {}, {} and {}: {}; PEM files were expected, the key without a "
                "password".format(self.certificate, self.private_key, self.authority, error)
            ) from error
        return context


def _refuse_password() -> str:
    """OpenSSL would ask for it at the terminal."""
    return ""
