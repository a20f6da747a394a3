//! The eBPF programs as a part of an ordinary C program, without a kernel: their steps, not whether a kernel takes them.

use std::path::Path;
use std::process::Command;

use crate::metrics_header::{has, room, run};

#[test]
fn hard_interrupts_nest() {
    if !has("cc") {
        return;
    }
    for architecture in ["x86", "arm64"] {
        let program =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs_test_nested_{architecture}"));
        let mut cc = Command::new("cc");
        // What the headers of the test leave out of a program leaves variables without a use.
        cc.args(["-std=gnu11", "-O1", "-Wall", "-Wno-unused", "-Wno-unknown-pragmas", "-Werror"]);
        cc.arg(format!("-D__TARGET_ARCH_{architecture}")).arg("-I").arg(room("tests/programs"));
        run(cc.arg(room("tests/programs/test_nested.c")).arg("-o").arg(&program));
        run(&mut Command::new(program));
    }
}
