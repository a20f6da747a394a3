//! Generates a function for each name in `src/boundary/calls.txt`, under MPI's name and its profiling name.

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use fs_err as fs;

const LIST: &str = "src/boundary/calls.txt";

fn main() {
    println!("cargo::rerun-if-changed={LIST}");
    let Ok(folder) = env::var("OUT_DIR") else { return };
    let list = fs::read_to_string(LIST).expect("the list of calls is part of the sources");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let calls: Vec<(&str, String)> = lines.flat_map(calls).collect();
    let mut code = String::new();
    let _ = writeln!(code, "pub(super) const CALLS: [Call; {}] = [", 2 * calls.len());
    for (kind, name) in &calls {
        let ends = match *kind {
            "b" => "phase_call::BARRIER",
            "c" => "phase_call::COLLECTIVE",
            "p" => "phase_call::PCONTROL",
            _ => "0",
        };
        for prefix in ["MPI_", "PMPI_"] {
            let finalize = name == "Finalize";
            let _ = writeln!(
                code,
                "    Call {{ name: c\"{prefix}{name}\", ends: {ends}, finalize: {finalize} }},"
            );
        }
    }
    let _ = writeln!(code, "];");
    for (number, (_, name)) in calls.iter().enumerate() {
        let _ = writeln!(code, "stub!({}, MPI_{name});\nstub!({}, PMPI_{name});", 2 * number, 2 * number + 1);
    }
    fs::write(Path::new(&folder).join("calls.rs"), code)
        .expect("cargo's folder for what is built can be written");
}

/// The kind and the names on a line.
fn calls(line: &str) -> Vec<(&str, String)> {
    let mut words = line.split(' ');
    let (Some(kind), Some(name)) = (words.next(), words.next()) else { return Vec::new() };
    let plain = std::iter::once((kind, name.to_owned()));
    plain.chain(words.map(|more| (kind, format!("{name}{more}")))).collect()
}
