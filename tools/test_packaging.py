"""The packages' files: Slurm's prolog and epilog, the systemd unit, the Debian package, the list of contents."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
QUELL = ROOT / "target/debug/quell"


class Checkout(unittest.TestCase):
    """What pip builds from a checkout, with a cargo and a maturin that build nothing."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "built").write_text("the command")
        cargo = self.folder / "cargo"
        lines = [json.dumps({"executable": built}) for built in (None, str(self.folder / "built"))]
        output = "".join(f"echo '{line}'\n" for line in lines)
        cargo.write_text(f'#!/bin/sh\necho "$@" >{self.folder}/asked\n{output}')
        cargo.chmod(0o755)
        self.packed: list[tuple[Path, str]] = []
        self.maturin = types.ModuleType("maturin")
        self.maturin.get_maturin_pep517_args = lambda _: ["--profile", "dev"]
        self.maturin.get_requires_for_build_wheel = lambda _: []
        self.maturin.build_wheel = self.pack

    def pack(self, folder: str, *_: object) -> str:
        """Notes what maturin would pack, and from where."""
        self.packed.append((Path.cwd(), Path("quell.data/scripts/quell").read_text()))
        return folder

    def backend(self) -> types.ModuleType:
        """The module that pip loads."""
        here = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        for patch in (
            mock.patch.dict(os.environ, here),
            mock.patch.dict(sys.modules, {"maturin": self.maturin}),
            mock.patch.object(sys, "path", [str(ROOT / "python"), *sys.path]),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        return importlib.import_module("wheel_backend")

    def test_the_command_is_packed_and_nothing_is_left(self) -> None:
        backend, before = self.backend(), Path.cwd()
        backend.DATA = self.folder / "quell.data"
        backend.PACKAGE = self.folder
        self.assertEqual(backend.build_wheel(str(self.folder)), str(self.folder.resolve()))
        self.assertEqual(self.packed, [(self.folder.resolve(), "the command")])
        self.assertIn("--profile dev --package quell-cli", (self.folder / "asked").read_text())
        self.assertEqual((backend.DATA.exists(), Path.cwd()), (False, before))

    def test_both_folders_can_be_installed(self) -> None:
        for file in (ROOT / "pyproject.toml", ROOT / "python/pyproject.toml"):
            text = file.read_text()
            path = text.partition('backend-path = ["')[2].partition('"')[0]
            self.assertIn('build-backend = "wheel_backend"', text)
            self.assertTrue((file.parent / path / "wheel_backend.py").is_file(), file)


class Slurm(unittest.TestCase):
    """The scripts, run with a quell that only records its arguments."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(self.end_keepers)
        self.folder = Path(folder.name)
        self.quell = self.folder / "quell"
        self.fail(code=0)

    def fail(self, code: int) -> None:
        """Makes quell exit with this code from now on."""
        # `tune apply --for` leaves a process running, which must not hold the scripts' lock.
        keeper = f"[ $3 = apply ] && {{ sleep 60 & echo $! >>{self.folder}/keepers; }}"
        answer = '''[ $3 = apply ] && printf '{\\n  "transaction": "2026-%s"\\n}\\n' "$$"'''
        calls = f'echo "$@" >>{self.folder}/asked\n{keeper} >&- 2>&-\n{answer}'
        self.quell.write_text(f"#!/bin/sh\n{calls}\nexit {code}\n")
        self.quell.chmod(0o755)

    def end_keepers(self) -> None:
        """Ends processes that the stub left running."""
        for pid in (self.folder / "keepers").read_text().split() if (self.folder / "keepers").exists() else []:
            os.kill(int(pid), 9)

    def run_script(self, name: str, job: str, **more: str) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "QUELL": str(self.quell),
            "QUELL_SLURM_STATE": str(self.folder / "state"),
            "SLURM_JOB_ID": job,
            **more,
        }
        script = PACKAGING / "slurm" / name
        ended = subprocess.run([script], env=environment, check=False, capture_output=True, text=True, timeout=300)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""), "a prolog that fails or talks would harm the node")

    def asked(self) -> list[str]:
        """The calls of quell since the last time."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def test_the_first_job_applies_and_the_last_gives_back(self) -> None:
        self.run_script("prolog.sh", "7", SLURM_JOB_CONSTRAINTS="gpu&quiet")
        plan, apply = self.asked()
        self.assertIn("tune plan --profile hpc-node", plan)
        self.assertIn("tune apply", apply)
        self.assertIn("--for 87000s", apply)
        self.assertIn("--max-risk medium", apply)
        end, applied = (self.folder / "state/applied").read_text().split()
        self.assertTrue(end.isdigit() and applied.startswith("2026-"), "the transaction that it applied")
        self.run_script("prolog.sh", "8", SLURM_JOB_COMMENT="quiet")
        self.run_script("epilog.sh", "7")
        self.assertEqual(self.asked(), [], "another job still wants the node quiet")
        self.run_script("epilog.sh", "8")
        self.assertEqual(self.asked(), [f"--quiet tune revert {applied}"], "and no other transaction")
        self.run_script("epilog.sh", "8")
        self.assertEqual(self.asked(), [])

    def test_a_longer_job_takes_the_settings_over(self) -> None:
        now = int(time.time())
        self.run_script("prolog.sh", "7", SLURM_JOB_COMMENT="quiet", SLURM_JOB_END_TIME=str(now + 100))
        self.asked()
        applied = (self.folder / "state/applied").read_text().split()[1]
        self.run_script("prolog.sh", "8", SLURM_JOB_COMMENT="quiet", SLURM_JOB_END_TIME=str(now + 9000))
        revert, *others = self.asked()
        self.assertEqual(revert, f"--quiet tune revert {applied}")
        self.assertEqual([line.split()[2] for line in others], ["plan", "apply"])

    def test_where_there_was_nothing_to_write_nothing_is_given_back(self) -> None:
        self.run_script("prolog.sh", "7", SLURM_JOB_COMMENT="quiet")
        self.asked()
        (self.folder / "state/applied").write_text("4000000000 \n")
        self.run_script("epilog.sh", "7")
        self.assertEqual(self.asked(), [], "without a transaction, all others would be reverted")

    def test_a_job_that_never_ended_is_forgotten_with_its_time(self) -> None:
        self.run_script("prolog.sh", "7", SLURM_JOB_COMMENT="quiet")
        self.run_script("prolog.sh", "8", SLURM_JOB_COMMENT="quiet")
        self.asked()
        (self.folder / "state/jobs/7").write_text("1000\n")
        applied = (self.folder / "state/applied").read_text().split()[1]
        self.run_script("epilog.sh", "8")
        self.assertEqual(self.asked(), [f"--quiet tune revert {applied}"])
        (self.folder / "state/applied").write_text("1000\n")
        self.run_script("prolog.sh", "9", SLURM_JOB_COMMENT="quiet")
        self.assertEqual([line.split()[2] for line in self.asked()], ["plan", "apply"])

    def test_who_does_not_ask_gets_nothing(self) -> None:
        for job in [{}, {"SLURM_JOB_COMMENT": "quieter"}, {"SLURM_JOB_CONSTRAINTS": "unquiet"}]:
            self.run_script("prolog.sh", "7", **job)
        self.run_script("prolog.sh", "../7", SLURM_JOB_COMMENT="quiet")
        self.run_script("epilog.sh", "7")
        self.assertEqual(self.asked(), [])

    def test_a_node_that_cannot_be_tuned_is_not_drained(self) -> None:
        self.fail(code=3)
        self.run_script("prolog.sh", "7", SLURM_JOB_COMMENT="quiet")
        self.assertIn("stays as it is", (self.folder / "state/prolog.log").read_text())
        self.asked()
        self.run_script("epilog.sh", "7")
        self.assertEqual(self.asked(), [], "nothing was applied")

    def test_the_settings_end_with_the_time_limit(self) -> None:
        far = str(4_000_000_000)
        self.run_script("prolog.sh", "7", SLURM_JOB_COMMENT="quiet", SLURM_JOB_END_TIME=far)
        seconds = int(self.asked()[1].split("--for ")[1].split("s")[0])
        self.assertGreater(seconds, 1_000_000_000)


class Unit(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
    def test_systemd_takes_every_line(self) -> None:
        for shipped in sorted((PACKAGING / "systemd").glob("*.service")):
            with self.subTest(shipped.name), tempfile.TemporaryDirectory() as folder:
                unit = Path(folder) / shipped.name
                text = shipped.read_text().replace("/usr/bin/quell", "/bin/true")
                unit.write_text(text.replace("Documentation=man", "#"))
                verify = ["systemd-analyze", "verify", unit]
                printed = subprocess.run(verify, check=False, capture_output=True, text=True)
                about = [line for line in printed.stderr.splitlines() if shipped.stem in line]
                self.assertEqual(about, [])

    def test_a_service_has_room_and_comes_after_those_that_set_the_same(self) -> None:
        text = (PACKAGING / "systemd/quell-tune@.service").read_text()
        unit, _, service = text.partition("[Service]")
        after = {unit for line in unit.splitlines() if line.startswith("After=") for unit in line[6:].split()}
        self.assertLessEqual({"tuned.service", "irqbalance.service", "kubelet.service"}, after)
        self.assertRegex(unit, r"(?m)^StartLimitIntervalSec=10min$")
        self.assertGreaterEqual(int(service.partition("\nTasksMax=")[2].split()[0]), 64)

    def test_drop_ins_are_restored_before_a_boot_reads_them(self) -> None:
        lines = (PACKAGING / "systemd/quell-recover.service").read_text().splitlines()
        before = {unit for line in lines if line.startswith("Before=") for unit in line[7:].split()}
        self.assertLessEqual({"systemd-sysctl.service", "systemd-tmpfiles-setup.service"}, before)


@unittest.skipUnless(QUELL.exists(), "no target/debug/quell: run cargo build first")
@unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb here")
class Package(unittest.TestCase):
    def build(self, folder: Path) -> Path:
        sbom = folder / "sbom.json"
        sbom.write_text("{}\n")
        stub = folder / "quell"
        stub.write_text("#!/bin/sh\n")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "QUELL_HERE": str(QUELL)}
        command = [PACKAGING / "deb.sh", stub, "amd64", sbom, folder]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        (package,) = folder.glob("*.deb")
        return package

    def test_it_holds_what_it_should_and_is_the_same_twice(self) -> None:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            first, second = self.build(Path(one)), self.build(Path(two))
            self.assertEqual(first.read_bytes(), second.read_bytes())
            listing = subprocess.run(["dpkg-deb", "--contents", first], check=True, capture_output=True, text=True)
        for part in [
            "./usr/bin/quell",
            "./usr/share/man/man1/quell-serve-metrics.1.gz",
            "./usr/share/bash-completion/completions/quell",
            "./usr/lib/systemd/system/quell-metrics.service",
            "./usr/lib/systemd/system/quell-recover.service",
            "./usr/lib/systemd/system/quell-tune@.service",
            "./usr/share/doc/quell/copyright",
            "./usr/share/doc/quell/examples/slurm/prolog.sh",
        ]:
            self.assertIn(part, listing.stdout)
        self.assertTrue(all(" root/root " in line for line in listing.stdout.splitlines()))


@unittest.skipUnless(shutil.which("cargo"), "no cargo here")
class WhatIsInside(unittest.TestCase):
    def test_every_component_has_a_version_and_a_licence(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sbom.json"
            command = [PACKAGING / "sbom.py", "x86_64-unknown-linux-gnu", path]
            subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
            document = json.loads(path.read_text())
        names = {component["name"] for component in document["components"]}
        self.assertTrue({"libbpf-sys", "parquet", "quell-sim", "glibc", "otf2"} <= names)
        self.assertFalse({"proptest", "insta", "libbpf-cargo"} & names, "what only builds or tests is not inside")
        for component in document["components"]:
            ours = component["name"].startswith("quell-")
            self.assertTrue(component["version"] and (ours or component.get("licenses")), component)


if __name__ == "__main__":
    unittest.main()
