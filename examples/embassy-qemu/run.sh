#!/bin/sh
# `cargo run` calls this with an image and the words behind `--`: QEMU, and a simulated cluster where one is needed.
set -eu
image=$(realpath "$1")
shift
cd "$(dirname "$(realpath "$0")")/../.."
exec cargo xtask board "$image" "$@"
