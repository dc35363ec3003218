"""Which addresses are on the public internet: not this machine's, nor those of a private or special network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

__all__ = ["is_local_name", "is_public", "is_unroutable"]

_GLOBAL_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""IPv6 addresses of IPv4 hosts, in networks that have IPv6 only; those of 6to4 (2002::/16) aren't in use any more."""


def is_public(address: str) -> bool:
    """Whether an address is on the public internet; what isn't an address isn't.

    Example:
        >>> [is_public(each) for each in ("1.1.1.1", "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1")]
        [True, False, False, False, False]
        >>> [is_public(each) for each in ("2606:4700::1", "::1", "fd00::1", "::ffff:1.1.1.1", "64:ff9b::7f00:1")]
        [True, False, False, False, False]
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public(found)
    if found in _TRANSLATED:
        return _is_public(IPv4Address(found.packed[-4:]))
    return found in _GLOBAL_IPV6 and found.is_global and not any(found in network for network in _SPECIAL_IPV6)


def _is_public(address: IPv4Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_reserved or address.packed[:3] == b"\xc0\0\0")


def is_unroutable(address: str) -> bool:
    """Whether an address belongs to one network segment, to no host or to several: no host's name should lead there.

    Example:
        >>> [is_unroutable(each) for each in ("169.254.169.254", "fe80::1", "0.0.0.0", "127.0.0.1", "10.0.0.1")]
        [True, True, True, False, False]
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_link_local or found.is_multicast or found.is_unspecified


def is_local_name(host: str) -> bool:
    """Whether a name means this machine by definition.

    Example:
        >>> is_local_name("localhost"), is_local_name("api.localhost"), is_local_name("localhost.example.org")
        (True, True, False)
    """
    return host == "localhost" or host.endswith(".localhost")
