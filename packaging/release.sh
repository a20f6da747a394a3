#!/usr/bin/env bash
# Everything that a release has, with checksums:  packaging/release.sh [FOLDER] [--arm64] [--check]
#
#   quell-VERSION-x86_64.tar.gz   the static program, man pages, completions, systemd and Slurm files
#   quell_VERSION_amd64.deb       the same for Debian and its kin
#   quell-VERSION-*.whl           the Python package, which brings the program too
#   quell-VERSION-*.cdx.json      what it is all made of (CycloneDX)
#   SHA256SUMS
# with --arm64 also for arm64, cross-built, with the tests of the portable crates under qemu; with --check all is built twice, from two folders,
# and compared byte for byte. All times in it are the last commit's.
set -euo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
here=$PWD
cd "$root"
# shellcheck source=tools/need.sh
source tools/need.sh
usual=$root/target/release-packages
folder=$usual arm64='' twice=''
for argument in "$@"; do
    case $argument in
        --arm64) arm64=yes ;;
        --check) twice=yes ;;
        -*) fail "unknown option $argument; usage: packaging/release.sh [FOLDER] [--arm64] [--check]" ;;
        *) folder=$(cd "$here" && realpath -m "$argument") ;;
    esac
done

# shellcheck disable=SC2119
need_compilers
need python3 python3-venv dpkg-dev xz-utils
need_python_tools release
[[ -z $(git status --porcelain) ]] || say "warning: this checkout has changes that are not committed: the packages hold them"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
# Only what this script made itself is made anew.
[[ $folder != "$usual" ]] || rm -rf "$usual"
mkdir -p "$folder"
[[ -z $(ls -A "$folder") ]] || fail "$folder is not empty: name a new folder"

# archive MACHINE DEBIAN-NAME: tar ball, Debian package and SBOM of what was built into $folder/.MACHINE
archive() {
    local machine=$1 name=quell-$version-$1 stage=$folder/.$1
    local sbom=$folder/$name.cdx.json tree=$stage/$name
    local libraries=/var/lib/dpkg
    [[ $machine == "$(uname -m)" ]] || libraries=$root/.x/arm64-root/var/lib/dpkg
    step python3 packaging/sbom.py "$machine-unknown-linux-gnu" "$sbom" "$libraries" "$2"
    QUELL_HERE=$folder/.x86_64/quell step packaging/deb.sh "$stage/quell" "$2" "$sbom" "$folder"
    mkdir -p "$tree"
    cp "$stage/quell" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE packaging/copyright "$tree"
    cp -r packaging/systemd packaging/slurm packaging/spack packaging/container "$tree"
    "$folder/.x86_64/quell" --quiet generate --man "$tree/man/man1" --completions "$tree/completions"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$stage" -c "$name" |
        gzip -9n >"$folder/$name.tar.gz"
}

step packaging/static.sh x86_64 "$folder/.x86_64"
archive x86_64 amd64
trap 'rm -rf "$root/python/quell.data"' EXIT
install -D -m 755 "$folder/.x86_64/quell" python/quell.data/scripts/quell
paths="--remap-path-prefix=$root=/quell --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
(cd python && RUSTFLAGS=$paths CARGO_PROFILE_RELEASE_STRIP=symbols step ../.x/venv/bin/maturin build --release --locked --out "$folder")
rm -rf python/quell.data
if [[ -n $arm64 ]]; then
    step packaging/arm64.sh "$folder/.aarch64" --test
    archive aarch64 arm64
fi
rm -rf "$folder"/.x86_64 "$folder"/.aarch64
(cd "$folder" && sha256sum -- * >SHA256SUMS)

if [[ -n $twice ]]; then
    other=$(mktemp -d)
    trap 'rm -rf "$other" "$root/python/quell.data"' EXIT
    git clone -q "$root" "$other/another-folder"
    (cd "$other/another-folder" && packaging/release.sh "$other/out" ${arm64:+--arm64})
    step diff "$folder/SHA256SUMS" "$other/out/SHA256SUMS" || fail "two builds of one commit differ: see above"
    say "built twice from two folders: the same bytes"
fi
say "made $folder:"
cat "$folder/SHA256SUMS"
