#!/usr/bin/env bash
# Builds the static arm64 `quell` on an x86-64 machine, and runs the tests of the portable crates under qemu:
#   packaging/arm64.sh FOLDER [--test]
# Debian's own Rust has the standard library of other architectures as packages, so all of it is done in a Debian root of its own
# (.x/arm64-root, made by debootstrap, some 2 GB), and nothing is installed here but debootstrap and qemu. A site's own mirror goes into
# QUELL_ARM64_MIRROR, lines for its apt.conf into QUELL_ARM64_APT.
set -euo pipefail

folder=$(realpath -m "${1:?usage: packaging/arm64.sh FOLDER [--test]}")
tests=${2:-}
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
cd "$root"
# shellcheck source=tools/need.sh
source tools/need.sh
[[ $EUID -eq 0 ]] || fail "a Debian root of its own can be made by root alone: sudo packaging/arm64.sh ..."
need debootstrap debian-archive-keyring qemu-user-static

# The first Debian whose Rust is new enough for the workspace.
suite=${QUELL_ARM64_SUITE:-forky}
mirror=${QUELL_ARM64_MIRROR:-http://deb.debian.org/debian}
tree=$root/.x/arm64-root
packages=(build-essential ca-certificates cargo clang git gcc-aarch64-linux-gnu libc6-dev-arm64-cross libelf-dev pkgconf rustc)
foreign=(libstd-rust-dev libc6-dev)
# Static libraries of an older Debian: newer ones have no OTF2, and a libelf that needs libzstd and defines what libz does. What runs within
# the build needs those of this machine too.
static=({libelf-dev,zlib1g-dev}:{amd64,arm64} {libotf2-trace-dev,libopen-trace-format2-dev}:arm64)
static_suite=bookworm

cleanup() {
    umount "$tree/quell" "$tree/proc" "$tree/dev" 2>/dev/null || true
}
trap cleanup EXIT
cleanup
if [[ ! -e $tree/.made ]]; then
    script=/usr/share/debootstrap/scripts/$suite
    [[ -e $script ]] || script=/usr/share/debootstrap/scripts/sid
    rm -rf --one-file-system "$tree"
    step debootstrap --force-check-gpg --variant=minbase "$suite" "$tree" "$mirror" "$script" >&2
    chroot "$tree" dpkg --add-architecture arm64
    printf '%s\n' "${QUELL_ARM64_APT:-}" >"$tree/etc/apt/apt.conf.d/site"
    chroot "$tree" apt-get update -qq
    step chroot "$tree" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${packages[@]}" "${foreign[@]/%/:arm64}" >/dev/null
    printf 'deb %s %s main\n' "$mirror" "$static_suite" >"$tree/etc/apt/sources.list.d/static.list"
    chroot "$tree" apt-get update -qq
    mkdir -p "$tree/static"
    # Unpacked over what is installed, as apt would not mix the suites.
    step chroot "$tree" sh -c "cd /static && apt-get download -qq ${static[*]/%//$static_suite} &&
        for package in *.deb; do dpkg-deb -x \"\$package\" /; done"
    touch "$tree/.made"
fi

mkdir -p "$tree/quell" "$tree/out" "$tree/cargo"
mount --bind "$root" "$tree/quell"
mount -t proc proc "$tree/proc"
mount --bind /dev "$tree/dev"
inside() {
    chroot "$tree" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CARGO_HOME=/cargo CARGO_TARGET_DIR=/target OTF2_CONFIG=/bin/false \
        SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" "$@"
}
# crates.io is reached from inside as from here.
cp /etc/resolv.conf "$tree/etc/resolv.conf"
cp -rT /etc/ssl/certs "$tree/etc/ssl/certs"
step inside /quell/packaging/static.sh aarch64 /out
install -D -m 755 "$tree/out/quell" "$folder/quell"
step qemu-aarch64-static "$folder/quell" --version

if [[ $tests == --test ]]; then
    cp "$(command -v qemu-aarch64-static)" "$tree/usr/bin/"
    step inside sh -c "cd /quell && CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static \
        cargo test --locked --target aarch64-unknown-linux-gnu -p quell-recording -p quell-sim -p quell-analysis --lib"
fi
