#!/usr/bin/env python3
"""Writes what a static quell is made of, as CycloneDX 1.6: every crate that is linked, and the C libraries.

sbom.py TARGET FILE [DPKG ARCHITECTURE], in the root of the repository. TARGET is cargo's name of the architecture; DPKG
is the folder in which Debian keeps what is installed where it was built, ARCHITECTURE Debian's name of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

# What comes with the program and is no crate: the Debian package that brings it, and its licence.
C_LIBRARIES = {
    "libelf": ("libelf-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later"),
    "zlib": ("zlib1g-dev", "Zlib"),
    "otf2": ("libotf2-trace-dev", "BSD-3-Clause"),
    "glibc": ("libc6-dev", "LGPL-2.1-or-later"),
}


def metadata(target: str) -> dict:
    """What cargo knows of the packages for a target."""
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        target,
        "--features",
        "quell-cli/static",
    ]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(known: dict, root: str) -> set[str]:
    """The ids of all packages that reach the program: not those that only build or test it."""
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    found, ahead = set(), [root]
    while ahead:
        one = ahead.pop()
        if one in found:
            continue
        found.add(one)
        ahead += [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return found


def crate(package: dict) -> dict:
    """A crate as a component."""
    url = f"pkg:cargo/{package['name']}@{package['version']}"
    component = {"type": "library", "bom-ref": url, "name": package["name"], "version": package["version"], "purl": url}
    if package.get("license"):
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return component


def c_library(name: str, package: str, licence: str, dpkg: str, architecture: str) -> dict:
    """A C library as a component, with the version that Debian's package has where it was linked."""
    whole = f"{package}:{architecture}" if architecture else package
    query = ["dpkg-query", "--admindir", dpkg, "--show", "--showformat", "${Version}", whole]
    answer = subprocess.run(query, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    version = answer.stdout.strip() or "unknown"
    url = f"pkg:deb/debian/{package}@{version}"
    licences = [{"expression": licence}]
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url, "licenses": licences}


def main() -> None:
    """Writes the file."""
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    dpkg, architecture = sys.argv[3:5] or ("/var/lib/dpkg", "")
    target, path = sys.argv[1], Path(sys.argv[2])
    known = metadata(target)
    program = next(package for package in known["packages"] if package["name"] == "quell-cli")
    ids = linked(known, program["id"])
    crates = [crate(package) for package in known["packages"] if package["id"] in ids and package is not program]
    components = sorted(crates, key=lambda one: one["bom-ref"])
    components += [c_library(name, *facts, dpkg, architecture) for name, facts in C_LIBRARIES.items()]
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    names = "\n".join(one["bom-ref"] for one in components)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Of the content, so that the same program has the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, target + names)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).isoformat(),
            "component": {"type": "application", "bom-ref": "quell", "name": "quell", "version": program["version"]},
        },
        "components": components,
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
