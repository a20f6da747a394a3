"""Hosts on one machine, by namespaces: each has its own network, name and SSH server. They share kernel and CPUs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NETWORK = "10.78.0"
HEAD, BRIDGE, INTERFACE = "head", "br0", "eth0"
TOOLS = ("unshare", "nsenter", "ip", "sshd", "ssh", "ssh-keygen", "taskset", "mpirun.openmpi")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
HOLD = (
    "hostname $0 && mount --bind $1 /etc/hosts && mount -t tmpfs tmpfs /run && mkdir /run/sshd && ip link set lo up "
    "&& echo ready && exec cat"
)
# Ranks of all hosts are spread over the CPUs, which each host would number for itself.
BOUND = """#!/bin/sh
exec taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc --all))) "$@"
"""


def lacking() -> str:
    """What is missing to make hosts here; nothing where all is there."""
    if os.geteuid():
        return "only root makes namespaces with networks"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]
    return f"{', '.join(missing)} not in PATH" if missing else ""


class Hosts:
    """A head and this number of hosts, which resolve each other's names."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.names = [f"q{at}" for at in range(number)]
        self.holders: dict[str, subprocess.Popen[str]] = {}
        self.daemons: list[subprocess.Popen[str]] = []

    def on(self, name: str) -> list[str]:
        """What comes before a command that runs on a host, in the folder."""
        holder = self.holders[name].pid
        return ["nsenter", "-t", str(holder), "-n", "-u", "-m", f"--wd={self.folder}", "--"]

    def launch(self) -> list[str]:
        """What starts one rank on each host, bound to the CPUs in turn, from the head; ranks that wait yield."""
        (self.folder / "bound").write_text(BOUND, encoding="utf-8")
        (self.folder / "bound").chmod(0o755)
        network = f"{NETWORK}.0/24"
        options = {
            "plm_rsh_agent": str(self.folder / "agent"),
            "oob_tcp_if_include": network,
            "btl": "self,tcp",
            "btl_tcp_if_include": network,
            "pml": "ob1",
            "mpi_yield_when_idle": "1",
        }
        words = [word for name, value in options.items() for word in ("--mca", name, value)]
        hosts = ["--host", ",".join(f"{name}:1" for name in self.names)]
        count = ["-n", str(len(self.names))]
        return ["mpirun.openmpi", *words, *hosts, *count, "--bind-to", "none", str(self.folder / "bound")]

    def make(self) -> None:
        """Makes the hosts and joins their networks."""
        known = [f"{NETWORK}.{at} {name}" for at, name in enumerate(self.names, 1)]
        text = "\n".join(["127.0.0.1 localhost", f"{NETWORK}.254 {HEAD}", *known, ""])
        (self.folder / "hosts").write_text(text, encoding="utf-8")
        self.hold(HEAD)
        bridge = f"ip link add {BRIDGE} type bridge && ip addr add {NETWORK}.254/24 dev {BRIDGE}"
        self.shell(HEAD, f"{bridge} && ip link set {BRIDGE} up")
        for at, name in enumerate(self.names, 1):
            self.hold(name)
            wire = f"ip link add v{at} type veth peer name {INTERFACE} netns {self.holders[name].pid}"
            self.shell(HEAD, f"{wire} && ip link set v{at} master {BRIDGE} up")
            self.shell(name, f"ip addr add {NETWORK}.{at}/24 dev {INTERFACE} && ip link set {INTERFACE} up")
        self.secure_shell()

    def hold(self, name: str) -> None:
        """Starts the process that a host's namespaces end with."""
        words = ["unshare", "--net", "--uts", "--mount", "sh", "-c", HOLD, name, str(self.folder / "hosts")]
        pipe = subprocess.PIPE
        holder = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PATH": PATH})
        self.holders[name] = holder
        if not holder.stdout or holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"the host {name} cannot be made")

    def shell(self, name: str, script: str) -> None:
        """Runs a script on a host."""
        words = [*self.on(name), "sh", "-ec", script]
        subprocess.run(words, check=True, capture_output=True, env={**os.environ, "PATH": PATH})

    def secure_shell(self) -> None:
        """Starts the hosts' SSH servers, and writes what launchers use in place of ssh."""
        self.shell(HEAD, "for key in key hostkey; do ssh-keygen -q -t ed25519 -N '' -f $key; done")
        config = [f"HostKey {self.folder}/hostkey", f"AuthorizedKeysFile {self.folder}/key.pub", "UsePAM no"]
        config += ["StrictModes no", "PermitRootLogin yes", "PidFile none", ""]
        (self.folder / "sshd.conf").write_text("\n".join(config), encoding="utf-8")
        words = f"exec ssh -q -F none -i {self.folder}/key -o StrictHostKeyChecking=no"
        words += ' -o UserKnownHostsFile=/dev/null -o BatchMode=yes "$@"'
        (self.folder / "agent").write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
        (self.folder / "agent").chmod(0o755)
        server = shutil.which("sshd", path=PATH) or "sshd"
        quiet = subprocess.DEVNULL
        for name in self.names:
            command = [*self.on(name), server, "-D", "-f", "sshd.conf"]
            self.daemons.append(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, text=True))
        for name in self.names:
            self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Waits until a host can be reached."""
        for _ in range(100):
            words = [*self.on(HEAD), str(self.folder / "agent"), name, "true"]
            if subprocess.run(words, check=False, capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"the host {name} does not answer")

    def inhabitants(self) -> list[int]:
        """The processes on the hosts, except those that hold them."""

        def network(pid: int) -> str:
            try:
                return str(Path(f"/proc/{pid}/ns/net").readlink())
            except OSError:
                return ""

        holders = {holder.pid for holder in self.holders.values()}
        ours = {network(pid) for pid in holders} - {"", network(os.getpid())}
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [pid for pid in pids if pid not in holders and network(pid) in ours]

    def end(self) -> None:
        """Ends every process on the hosts, and so the hosts."""
        for _ in range(50):
            left = self.inhabitants()
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.05)
        for process in [*self.daemons, *self.holders.values()]:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()


@contextlib.contextmanager
def hosts(folder: Path, number: int) -> Iterator[Hosts]:
    """This number of hosts, as long as they are needed."""
    made = Hosts(folder, number)
    try:
        made.make()
        yield made
    finally:
        made.end()
