#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# build.sh - what conda-build runs.
set -eu
make -j"${CPU_COUNT:-2}"
make install prefix="$PREFIX" PLUGINDIR="$PREFIX/hdf5/lib/plugin"
