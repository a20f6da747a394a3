#!/usr/bin/env bash
# Makes a Debian package of a static quell, the same bytes each time:  packaging/deb.sh QUELL ARCHITECTURE SBOM FOLDER
set -euo pipefail

usage="usage: packaging/deb.sh QUELL amd64|arm64 SBOM FOLDER"
quell=${1:?$usage} architecture=${2:?$usage} sbom=${3:?$usage} folder=${4:?$usage}
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -1)
: "${SOURCE_DATE_EPOCH:?the time that all files get, in seconds since 1970}"
export SOURCE_DATE_EPOCH
# What describes the program is made by one that runs here, of the same sources.
describes=${QUELL_HERE:-$quell}

tree=$(mktemp -d)
chmod 755 "$tree"
trap 'rm -rf "$tree"' EXIT
umask 022
put() { install -D -m "$1" "$2" "$tree/$3"; }

put 755 "$quell" usr/bin/quell
"$describes" --quiet generate --man "$tree/usr/share/man/man1" --completions "$tree/usr/share"
gzip -9n "$tree"/usr/share/man/man1/*.1
for unit in quell-metrics quell-recover quell-tune@; do
    put 644 "$root/packaging/systemd/$unit.service" "usr/lib/systemd/system/$unit.service"
done
put 644 "$root/crates/kernel/include/quell_metrics.h" usr/include/quell_metrics.h
put 644 "$root/crates/kernel/include/quell_metrics_open.h" usr/include/quell_metrics_open.h
put 644 "$root/crates/kernel/include/quell_metrics_read.h" usr/include/quell_metrics_read.h
for file in prolog.sh epilog.sh job.sbatch; do
    put 755 "$root/packaging/slurm/$file" "usr/share/doc/quell/examples/slurm/$file"
done
put 644 "$root/packaging/copyright" usr/share/doc/quell/copyright
put 644 "$root/LICENSE-MIT" usr/share/doc/quell/LICENSE-MIT
put 644 "$root/README.md" usr/share/doc/quell/README.md
put 644 "$root/docs/patterns.md" usr/share/doc/quell/patterns.md
put 644 "$root/docs/reference/glossary.md" usr/share/doc/quell/glossary.md
put 644 "$sbom" usr/share/doc/quell/sbom.cdx.json
gzip -9nc "$root/CHANGELOG.md" >"$tree/usr/share/doc/quell/changelog.gz"
chmod 644 "$tree/usr/share/doc/quell/changelog.gz"

mkdir -p "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: quell
Version: $version
Architecture: $architecture
Maintainer: The quell authors <quell@localhost>
Section: admin
Priority: optional
Installed-Size: $(find "$tree/usr" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print int(bytes / 1024) + 1 }')
Suggests: openmpi-bin, libopenmpi-dev
Description: operating-system noise: measured, named, predicted, taken away
 quell measures operating-system noise (jitter) on Linux nodes, names its sources
 in the kernel, predicts what it costs a parallel program at any scale, tracks it
 through MPI runs, and applies, proves and reverts mitigations.
 .
 The program is static: it needs no library of the system. Sources are named on
 kernels from 5.8 on; on older ones they stay unknown and the rest works.
CONTROL
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$folder"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$folder/quell_${version}_$architecture.deb"
