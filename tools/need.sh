# shellcheck shell=bash
# What ./x needs, and how it is installed. Sourced by ./x. Each function looks first: a second run installs nothing.

say() { printf 'x: %s\n' "$*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# Says a command, then runs it.
step() {
    say "$*"
    "$@"
}

# Is the package's work done already? Judged by what it brings, so any other way to install it counts too.
has() {
    case $1 in
        cargo-*) command -v "$1" || test -x "${CARGO_HOME:-$HOME/.cargo}/bin/$1" ;;
        build-essential) cc -fsyntax-only -include stdio.h -x c /dev/null && command -v make ;;
        clang) clang -target bpf -c -o /dev/null -x c /dev/null ;;
        libelf-dev) cc -fsyntax-only -include gelf.h -x c /dev/null ;;
        debian-archive-keyring) test -e /usr/share/keyrings/debian-archive-keyring.gpg ;;
        dpkg-dev) command -v dpkg-deb ;;
        busybox-static) command -v busybox ;;
        e2fsprogs) PATH=$PATH:/usr/sbin command -v mkfs.ext4 ;;
        grub-efi-amd64-bin) test -d /usr/lib/grub/x86_64-efi && command -v grub-mkstandalone ;;
        iproute2) command -v ip ;;
        lammps) command -v lmp || command -v lammps ;;
        libmpich-dev) mpicc.mpich -fsyntax-only -include mpi.h -x c /dev/null ;;
        libomp-dev) clang -fopenmp -shared -o /dev/null -include omp.h -x c /dev/null ;;
        libopenmpi-dev) mpicc.openmpi -fsyntax-only -include mpi.h -x c /dev/null ;;
        libotf2-trace-dev) cc -fsyntax-only -include otf2/otf2.h -x c /dev/null ;;
        libbpf-dev) cc -fsyntax-only -include bpf/libbpf.h -x c /dev/null ;;
        libbpf-tools) PATH=$PATH:/usr/sbin command -v runqlat ;;
        linux-perf) perf version ;;
        mpich) command -v mpiexec.mpich ;;
        munge) PATH=$PATH:/usr/sbin command -v munged ;;
        openmpi-bin) command -v mpirun.openmpi ;;
        openssh-server) PATH=$PATH:/usr/sbin command -v sshd ;;
        otf2-tools) command -v otf2-print ;;
        python3) python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ;;
        python3-otf2) /usr/bin/python3 -c 'import otf2' ;;
        python3-venv) python3 -c 'import ensurepip, venv' ;;
        ovmf) test -e /usr/share/ovmf/OVMF.fd ;;
        qemu-system-x86) command -v qemu-system-x86_64 ;;
        qemu-utils) command -v qemu-img ;;
        qemu-user-static) command -v qemu-aarch64-static ;;
        rt-tests) command -v oslat ;;
        slurm-wlm) PATH=$PATH:/usr/sbin command -v slurmd && command -v srun ;;
        xz-utils) command -v xz ;;
        zlib1g-dev) cc -fsyntax-only -include zlib.h -x c /dev/null ;;
        *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

why() {
    case $1 in
        build-essential) echo "make, and a C compiler and linker, which Rust links with" ;;
        cargo-deny) echo "holds the dependencies' licences and sources to deny.toml" ;;
        cargo-fuzz) echo "builds and runs the fuzz targets" ;;
        cargo-nextest) echo "runs tests side by side, those that need the machine one at a time" ;;
        clang) echo "compiles the eBPF programs of crates/kernel" ;;
        debian-archive-keyring) echo "Debian's keys, to know its packages by" ;;
        debootstrap) echo "makes a Debian root of its own, to build for another architecture in" ;;
        dpkg-dev) echo "makes Debian packages" ;;
        bpftrace) echo "to measure the kernel recorder next to" ;;
        busybox-static) echo "the small system of the lab's virtual machines" ;;
        cpio) echo "packs the first file system of a virtual machine" ;;
        e2fsprogs) echo "makes the disks of virtual machines" ;;
        grub-efi-amd64-bin) echo "the boot loader of a virtual machine that boots by UEFI" ;;
        iproute2) echo "brings ip, to make hosts with a network of their own on one machine" ;;
        libbpf-dev) echo "libbpf, to measure the least that a recorder's programs cost" ;;
        libbpf-tools) echo "brings runqlat and offcputime, to measure the kernel recorder next to" ;;
        libelf-dev) echo "libelf's headers, for libbpf, which loads the eBPF programs" ;;
        libmpich-dev) echo "MPICH's mpicc, for the tests of benchmarks" ;;
        libomp-dev) echo "LLVM's OpenMP runtime, for the tests of hybrid programs" ;;
        libopenmpi-dev) echo "Open MPI's mpicc, for the tests of benchmarks" ;;
        libotf2-trace-dev) echo "the OTF2 library, which reads and writes archives of MPI runs" ;;
        linux-perf) echo "brings perf, to hold the recorder's figures against" ;;
        mpich) echo "MPICH's launcher, for the tests of benchmarks" ;;
        mmdebstrap) echo "makes the Debian system of the lab's virtual machines" ;;
        munge) echo "lets Slurm's daemons know each other, for the tests with many hosts" ;;
        openmpi-bin) echo "Open MPI's launcher, for the tests of benchmarks" ;;
        openssh-server) echo "brings sshd, by which launchers reach the hosts of the tests" ;;
        chromium) echo "draws quell's pages in the tests" ;;
        otf2-tools) echo "brings otf2-print, to read archives of ours in the tests" ;;
        ovmf) echo "the firmware of a virtual machine that boots by UEFI" ;;
        pkg-config) echo "finds libraries for libbpf's build" ;;
        python3) echo "Python 3.9 or later, for the checks and the benchmarks" ;;
        python3-otf2) echo "writes archives in the tests, as others do" ;;
        python3-venv) echo "keeps the Python tools in .x/venv, apart from the system's" ;;
        qemu-system-x86) echo "runs virtual machines with other kernels" ;;
        qemu-utils) echo "makes disks of virtual machines that share a base" ;;
        qemu-user-static) echo "runs programs of another architecture, to test what was built for it" ;;
        rt-tests) echo "brings oslat, to measure next to" ;;
        rustup) echo "installs the Rust toolchain" ;;
        shellcheck) echo "checks the shell scripts" ;;
        slurm-wlm) echo "Slurm, for the tests with many hosts" ;;
        trace-cmd) echo "records what the kernel itself traces, to hold the recorder's figures against" ;;
        xz-utils) echo "compresses Debian packages" ;;
        zlib1g-dev) echo "zlib's headers, for libbpf" ;;
    esac
}

can_install() { [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; }

apt_update() {
    [[ -z ${apt_updated:-} ]] || return 0
    apt-get update -qq </dev/null >/dev/null || say "apt-get update failed; trying with the lists at hand"
    apt_updated=yes
}

apt_offers() {
    apt_update
    apt-cache policy "$1" | grep -q '^  Candidate: [^(]'
}

apt_install() {
    local package
    for package in "$@"; do say "installing $package: $(why "$package")"; done
    export DEBIAN_FRONTEND=noninteractive
    apt_update
    # Nothing that is installed for a test starts as a service.
    local policy=/usr/sbin/policy-rc.d ours='' code=0
    if [[ ! -e $policy ]] && printf '#!/bin/sh\nexit 101\n' >"$policy" 2>/dev/null; then
        chmod 755 "$policy"
        ours=yes
    fi
    apt-get install -y -qq --no-install-recommends --no-remove -o DPkg::Lock::Timeout=120 "$@" </dev/null >/dev/null || code=$?
    [[ -z $ours ]] || rm -f "$policy"
    return "$code"
}

# announce PACKAGE...: says what of it is missing, and so what is going to be installed.
announce() {
    local package missing=()
    for package in "$@"; do has "$package" || missing+=("$package"); done
    ((${#missing[@]} == 0)) || say "missing, and to be installed now where that can be done: ${missing[*]}"
    [[ -e .x/venv ]] || say "Python's tools go into .x/venv, and nowhere else"
}

# need PACKAGE...: installs what is missing, or says how to and ends.
need() {
    local package missing=()
    for package in "$@"; do has "$package" || missing+=("$package"); done
    ((${#missing[@]})) || return 0
    if ! can_install; then
        for package in "${missing[@]}"; do say "missing: $package: $(why "$package")"; done
        command -v apt-get >/dev/null || fail "install these with this system's own package manager (the names are Debian's)"
        fail "to install what is missing: sudo apt-get install ${missing[*]}"
    fi
    apt_install "${missing[@]}" || fail "apt-get could not install ${missing[*]}; see its messages above"
    for package in "${missing[@]}"; do
        has "$package" || fail "$package is installed but does not work ($(why "$package")); look at PATH"
    done
}

# try PACKAGE...: like need, but reports what it cannot install, and continues.
try() {
    local package missing=()
    for package in "$@"; do has "$package" || missing+=("$package"); done
    ((${#missing[@]})) || return 0
    if ! can_install; then
        for package in "${missing[@]}"; do say "going on without $package ($(why "$package"))"; done
        say "to install them: sudo apt-get install ${missing[*]}"
    elif ! apt_install "${missing[@]}"; then
        # One that this system does not offer must not keep the others away.
        say "apt-get could not install all of them at once; trying one by one"
        for package in "${missing[@]}"; do
            has "$package" || apt_install "$package" || say "going on without $package"
        done
    fi
}

# What the workspace compiles with, the kernel side included: need_compilers [clippy] [rustfmt].
need_compilers() {
    need build-essential clang libelf-dev zlib1g-dev pkg-config libotf2-trace-dev
    need_rust "$@"
}

# The Rust that the workspace asks for, with what is asked next to it: need_rust [clippy] [rustfmt].
need_rust() {
    rust_is_new_enough || PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    if ! rust_is_new_enough; then
        command -v rustup >/dev/null || install_rustup
        export RUSTUP_TOOLCHAIN=stable
        rust_is_new_enough || step rustup toolchain install stable --profile minimal >&2
        rust_is_new_enough || fail "rustup's stable toolchain is older than Rust $(rust_wanted); run: rustup update stable"
    fi
    local component
    for component in "$@"; do need_component "$component"; done
}

rust_wanted() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

rust_is_new_enough() {
    local found
    found=$(cargo --version 2>/dev/null) || return 1
    found=${found#cargo }
    printf '%s\n' "$(rust_wanted)" "${found%% *}" | sort --version-sort --check=quiet
}

install_rustup() {
    if can_install && apt_offers rustup && apt_install rustup; then return 0; fi
    say "installing rustup from https://sh.rustup.rs: $(why rustup)"
    if curl -fsSL --proto '=https' --max-time 300 https://sh.rustup.rs |
        sh -s -- -y --quiet --profile minimal --default-toolchain none --no-modify-path >&2; then
        command -v rustup >/dev/null && return 0
    fi
    fail "no Rust $(rust_wanted) or later, and rustup could not be fetched; install it from https://rustup.rs, then repeat"
}

PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

# In the versions that .config/nextest.toml and deny.toml are written for.
declare -A cargo_tools=([cargo-deny]=0.20.2 [cargo-fuzz]=0.13.2 [cargo-nextest]=0.9.128)

# try_cargo_tool NAME [OPTION...]: a command of cargo's, from crates.io; reports if it cannot be had, and continues.
try_cargo_tool() {
    local name=$1 version=${cargo_tools[$1]}
    shift
    ! command -v "$name" >/dev/null || return 0
    say "installing $name $version from crates.io, once, in some minutes: $(why "$name")"
    # Built quickly, for it runs for seconds.
    step env -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 \
        cargo install --quiet --locked --version "$version" "$@" "$name" && return 0
    say "going on without $name ($(why "$name"))"
    return 1
}

# need_component clippy|rustfmt
need_component() {
    local verb=${1/rustfmt/fmt}
    cargo "$verb" --version >/dev/null 2>&1 && return 0
    command -v rustup >/dev/null || fail "cargo $verb is missing, and no rustup to add it; install $1 for this Rust"
    step rustup component add "$1" >&2 || fail "rustup could not add $1"
}

# need_python_tools NAME: what tools/requirements-NAME.txt pins, in .x/venv. The copy there says what is installed.
need_python_tools() {
    local wanted=tools/requirements-$1.txt installed=.x/venv/requirements-$1.txt
    cmp -s "$wanted" "$installed" && .x/venv/bin/python -c '' 2>/dev/null && return 0
    need python3 python3-venv
    if ! .x/venv/bin/python -c '' 2>/dev/null; then
        step python3 -m venv --clear .x/venv
    fi
    step .x/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$wanted" >&2
    cp "$wanted" "$installed"
}
