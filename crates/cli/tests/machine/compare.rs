//! `quell compare` of recordings of the real kernel.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::disturbers::{Burner, rename_this_thread};
use crate::support::node::last_cpu;
use crate::support::tools;
use crate::support::{json, run};
use quell_testing::{machine, measure};

/// A recording of some seconds, under a daemon that takes 5 ms of the last CPU every half second, or without it.
fn recorded(folder: &Path, name: &str, disturbed: bool) {
    let stop = AtomicBool::new(!disturbed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            rename_this_thread(b"crawld");
            Burner { cpu: last_cpu(), every_ns: 500_000_000, burn_ns: 5_000_000 }.run(&stop);
        });
        let output = run(folder, &["record", "-o", name, "--duration", "5s", "--threshold", "1us"]);
        stop.store(true, Ordering::Relaxed);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// The sources that `compare` says have changed, each with how.
fn changed(folder: &Path, before: &str, after: &str) -> Vec<(String, String)> {
    let found = json(folder, &["compare", before, after, "--json"]);
    let changes = found["by_source"]["changes"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    changes.iter().map(|change| (text(&change["source"]), text(&change["verdict"]))).collect()
}

mod measured {
    use super::*;

    #[test]
    fn a_new_daemon_is_named() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !tools::has_two_cpus() || !tools::may_watch_the_kernel(dir.path()) {
            return;
        }
        measure(|attempt| {
            let name = |side: &str| format!("{side}-{attempt}.quell");
            recorded(dir.path(), &name("healthy"), false);
            recorded(dir.path(), &name("ill"), true);
            let expected = ("task:crawld".to_owned(), "new".to_owned());
            let found = changed(dir.path(), &name("healthy"), &name("ill"));
            if found.first() != Some(&expected) {
                return Err(format!("from healthy to ill: {found:?}"));
            }
            let back = changed(dir.path(), &name("ill"), &name("healthy"));
            match back.first() == Some(&("task:crawld".to_owned(), "gone".to_owned())) {
                true => Ok(()),
                false => Err(format!("from ill to healthy: {back:?}")),
            }
        });
    }
}
