//! Builds the libraries that a job loads and that quell embeds: quell-replay as a shared object, one for each way to inject noise.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;

/// A panic must abort: the library runs in other programs' processes, whose frames cannot be unwound. One codegen unit lets the
/// compiler drop all unused code.
const PROFILE: [&str; 6] = [
    "profile.release.panic=\"abort\"",
    "profile.release.lto=\"fat\"",
    "profile.release.codegen-units=1",
    "profile.release.opt-level=3",
    "profile.release.debug=false",
    "profile.release.strip=\"none\"",
];

fn main() {
    for file in ["src", "build.rs", "Cargo.toml"] {
        println!("cargo::rerun-if-changed=../replay/{file}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(variable("OUT_DIR"));
    for feature in ["boundary", "timer"] {
        build(feature, &folder);
    }
}

/// Writes `quell-replay-FEATURE.so` to the folder.
fn build(feature: &str, folder: &Path) {
    let (target, host) = (variable("TARGET"), variable("HOST"));
    let made = folder.join("preload");
    let mut command = Command::new(variable("CARGO"));
    command.args(["rustc", "--release", "--lib", "--crate-type", "cdylib", "--frozen", "--quiet"]);
    command
        .args(["--manifest-path", "../replay/Cargo.toml", "--features", feature])
        .arg("--target-dir")
        .arg(&made);
    command.args(PROFILE.iter().flat_map(|line| ["--config", line]));
    if target != host {
        command.arg("--target").arg(&target);
    }
    // The library is loaded into other programs and must use their C library, even where quell itself links one statically.
    let flags =
        format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_string_lossy().to_uppercase().replace('-', "_"));
    let kept = env::var(&flags).unwrap_or_default();
    let kept = kept
        .split_whitespace()
        .filter(|flag| !flag.contains("crt-static") && !flag.contains("relocation-model"));
    command.env(flags, kept.collect::<Vec<_>>().join(" "));
    // Wrappers and flags of the outer build, such as clippy or instrumentation, must not reach this one.
    for name in ["RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR"] {
        command.env_remove(name);
    }
    let status = command.status().expect("cargo can be started");
    assert!(
        status.success(),
        "quell-replay does not build as a library to preload ({status}); the compiler's words are above"
    );
    let release = if target == host { made.join("release") } else { made.join(target).join("release") };
    fs::copy(release.join("libquell_replay.so"), folder.join(format!("quell-replay-{feature}.so")))
        .expect("what was built can be copied");
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}
