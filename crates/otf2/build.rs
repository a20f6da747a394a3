//! Compiles the C side against this system's OTF2 headers, and links the OTF2 library.
#![expect(clippy::unwrap_used, reason = "a build script fails by panicking")]

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-env-changed=OTF2_CONFIG");
    let headers = include_folders();
    assert!(
        headers.iter().any(|folder| folder.join("otf2/otf2.h").exists()),
        "OTF2's headers are missing: install Debian's libotf2-trace-dev, or set OTF2_CONFIG to the otf2-config of OTF2 3.0 or later"
    );
    cc::Build::new()
        .files(["c/read.c", "c/write.c", "c/problem.c"])
        .include("include")
        .includes(headers)
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .compile("quell_otf2");
    link();
}

/// The output of `otf2-config`; empty if it is not installed.
fn config(what: &str) -> Vec<String> {
    let program = env::var("OTF2_CONFIG").unwrap_or_else(|_| "otf2-config".into());
    let answer = Command::new(program).arg(what).output();
    let text = answer.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn include_folders() -> Vec<PathBuf> {
    let declared =
        config("--cppflags").into_iter().filter_map(|flag| flag.strip_prefix("-I").map(PathBuf::from));
    declared
        .chain(["/usr/include".into(), "/usr/local/include".into()])
        .filter(|folder| folder.is_dir())
        .collect()
}

/// Links the static library if there is one, so that the program also runs where OTF2 is not installed.
fn link() {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let declared =
        config("--ldflags").into_iter().filter_map(|flag| flag.strip_prefix("-L").map(PathBuf::from));
    let usual = [
        format!("/usr/lib/{machine}-linux-gnu"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
        "/usr/local/lib".into(),
    ];
    let folders: Vec<PathBuf> = declared.chain(usual.map(PathBuf::from)).collect();
    let holder = |name: &str| folders.iter().find(|folder| folder.join(name).exists()).cloned();
    if let Some(folder) = holder("libotf2.a") {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static=otf2");
    } else if let Some(folder) = holder("libotf2.so") {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=otf2");
    } else {
        panic!(
            "the OTF2 library is missing: install Debian's libotf2-trace-dev, or set OTF2_CONFIG to otf2-config"
        );
    }
    println!("cargo:rustc-link-lib=m");
}
