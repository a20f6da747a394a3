//! Compiles the BPF programs and generates the Rust bindings of their maps and types.
#![expect(clippy::unwrap_used, reason = "a build script fails by panicking")]

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("recorder.skel.rs");
    let target = match env::var("CARGO_CFG_TARGET_ARCH").unwrap().as_str() {
        "x86_64" => "-D__TARGET_ARCH_x86",
        "aarch64" => "-D__TARGET_ARCH_arm64",
        other => panic!("the kernel recorder is not made for {other}"),
    };
    // The programs embed the names of their source files. With this prefix map they are the same wherever the object is built.
    let here = env::var("CARGO_MANIFEST_DIR").unwrap();
    let names = format!("-ffile-prefix-map={here}=/quell/crates/kernel");
    SkeletonBuilder::new()
        .source("src/bpf/recorder.bpf.c")
        .clang_args([OsStr::new(target), OsStr::new("-mcpu=v3"), OsStr::new("-Wall"), OsStr::new(&names)])
        .build_and_generate(&out)
        .unwrap();
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=include");
}
