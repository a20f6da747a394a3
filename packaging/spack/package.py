# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""Spack's recipe: packages/quell/package.py in a repository of yours, `git` leading to your copy of the sources."""

from spack.package import *


class Quell(CargoPackage):
    """Operating-system noise: measured, its sources named, its cost predicted to any scale, taken away."""

    # The site's own copy, or a checkout: `spack dev-build quell@main`.
    git = "https://localhost/quell.git"

    license("MIT OR Apache-2.0", checked_by="quell")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("llvm+clang", type="build", when="platform=linux")
    depends_on("pkgconfig", type="build")
    depends_on("elfutils")
    depends_on("zlib-api")
    depends_on("otf2@3:")

    conflicts("platform=darwin", msg="it measures Linux kernels")
    conflicts("platform=windows", msg="it measures Linux kernels")

    def setup_build_environment(self, env):
        env.set("OTF2_CONFIG", self.spec["otf2"].prefix.bin.join("otf2-config"))

    def build_args(self):
        return ["--package", "quell-cli"]

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        install(join_path("target", "release", "quell"), prefix.bin)
        quell = Executable(join_path(prefix.bin, "quell"))
        quell("generate", "--man", join_path(prefix.share, "man", "man1"))
        quell("generate", "--completions", prefix.share)

    @run_after("install")
    def check_install(self):
        Executable(self.prefix.bin.quell)("--version")
