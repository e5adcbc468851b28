"""Whom an https address is trusted by."""

from __future__ import annotations

import functools
import os
import ssl

import certifi


@functools.lru_cache(maxsize=None)
def _context(file, folder):
    return ssl.create_default_context(cafile=file, capath=folder)


def default_context():
    """The authorities of SSL_CERT_FILE or SSL_CERT_DIR, else certifi's. Loading them is slow."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return _context(file or None, folder or None)
    return _context(certifi.where(), None)
