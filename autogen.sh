#!/bin/sh
# Makes ./configure. Needs autoconf, automake and pkg-config.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force
