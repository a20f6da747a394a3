#!/usr/bin/env bash
# Builds one static `quell` that runs on any Linux of its architecture, the same bytes wherever it is built:
#   packaging/static.sh x86_64|aarch64 FOLDER
# The other architecture needs a Rust with its standard library, a cross compiler, and static libelf, zlib and OTF2 of it: packaging/arm64.sh brings them.
set -euo pipefail

machine=${1:?usage: packaging/static.sh x86_64|aarch64 FOLDER}
folder=${2:?usage: packaging/static.sh x86_64|aarch64 FOLDER}
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
target=$machine-unknown-linux-gnu
cd "$root"
# shellcheck source=tools/need.sh
source tools/need.sh
# shellcheck disable=SC2119
need_compilers

# Nothing of this machine's paths or clock goes into the program.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=symbols
cargo_home=${CARGO_HOME:-$HOME/.cargo}
paths="--remap-path-prefix=$root=/quell --remap-path-prefix=$cargo_home=/cargo"
export CFLAGS="-O2 -ffile-prefix-map=$root=/quell -ffile-prefix-map=$cargo_home=/cargo"
export "CARGO_TARGET_${machine^^}_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static -Crelocation-model=static $paths"
# By machine: what runs within the build links libelf too, and is of this one.
for one in "$machine" "$(uname -m)"; do
    export "LIBBPF_SYS_LIBRARY_PATH_${one}_unknown_linux_gnu=/usr/lib/$one-linux-gnu"
done
if [[ $machine != "$(uname -m)" ]]; then
    export "CARGO_TARGET_${machine^^}_UNKNOWN_LINUX_GNU_LINKER=$machine-linux-gnu-gcc"
    export "CC_${machine}_unknown_linux_gnu=$machine-linux-gnu-gcc" "AR_${machine}_unknown_linux_gnu=$machine-linux-gnu-ar"
fi

step cargo build --release --locked --target "$target" -p quell-cli --features static
mkdir -p "$folder"
install -m 755 "${CARGO_TARGET_DIR:-target}/$target/release/quell" "$folder/quell"
file -b "$folder/quell" 2>/dev/null | grep -q 'statically linked' || ! ldd "$folder/quell" >/dev/null 2>&1 ||
    fail "$folder/quell is not static: $(ldd "$folder/quell")"
say "made $folder/quell ($(stat -c %s "$folder/quell") bytes)"
