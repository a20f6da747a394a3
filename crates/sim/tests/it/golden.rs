//! LogGOPSim's own results; see `golden/loggops/README.md`.

use std::path::{Path, PathBuf};

use crate::reference::compatible::compatible;
use crate::reference::physical::physical;
use crate::reference::strikes::Strikes;
use crate::reference::{Found, Reference};
use quell_sim::goal::{Findings, Schedule, read_text};
use quell_sim::loggops::{Network, Noise, PerByte, Program, Rules, Run, RunError, SizeRange, run};
use serde_json::Value;

struct Case {
    name: String,
    program: Schedule,
    net: Network,
    strikes: Option<Strikes>,
    expected: Value,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/loggops");
    let entries = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| case(folder)).collect()
}

fn case(folder: &Path) -> Case {
    let text = |name: &str| fs_err::read_to_string(folder.join(name)).unwrap();
    let document = |name: &str| serde_json::from_str::<Value>(&text(name)).unwrap();
    let params = document("params.json");
    let parameter = |name: &str| params["loggops"][name].as_u64().unwrap();
    let net = Network {
        latency: parameter("L"),
        overhead: parameter("o"),
        gap: parameter("g"),
        gap_per_byte: PerByte::from_nanos(parameter("G")),
        overhead_per_byte: PerByte::from_nanos(parameter("O")),
        eager_limit: parameter("S"),
    };
    let strikes = params.get("noise").map(|noise| {
        let rounded = |field: &str| field.parse::<f64>().unwrap().round() as u64;
        let pair = |line: &str| line.split_once('\t').map(|pair| (rounded(pair.0), rounded(pair.1)));
        let trace = text(noise["file"].as_str().unwrap());
        let detours: Vec<_> = trace.lines().filter(|line| !line.starts_with('#')).filter_map(pair).collect();
        let period = detours.last().unwrap().0;
        assert_eq!(Some(period), noise["trace_length_ns"].as_u64());
        Strikes {
            traces: vec![(detours, period)],
            places: numbers(&noise["start_offset_ns"]).into_iter().map(|at| (0, at)).collect(),
        }
    });
    Case {
        name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
        program: read_text(text("schedule.goal").as_bytes(), &mut Findings::default()).unwrap(),
        net,
        strikes,
        expected: document("expected.json"),
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Compares a result with LogGOPSim's, which has no times of ranks that did not finish, and no noise if there are many ranks.
fn check(engine: &str, case: &Case, found: &Found) {
    let Case { name, expected, .. } = case;
    assert_eq!(Some(found.events), expected["events"].as_u64(), "{engine}: events of {name}");
    let finished = found.left_over[..2] == [0, 0];
    assert_eq!(Some(finished), expected["finished"].as_bool(), "{engine}: the end of {name}");
    if finished {
        assert_eq!(found.finish, numbers(&expected["finish_times_ns"]), "{engine}: times of {name}");
        assert_eq!(found.left_over[2], 0, "{engine}: operations left of {name}");
    }
    if let Some(noise) = expected.get("injected_noise_ns") {
        assert_eq!(found.noise, numbers(noise), "{engine}: noise of {name}");
    }
}

#[test]
fn the_reference_gives_loggopsims_results() {
    let cases = cases();
    assert_eq!(cases.len(), 14);
    for case in &cases {
        let Reference { found, widest, .. } = compatible(&case.program, case.net, case.strikes.as_ref());
        assert!(widest <= 16, "{}: LogGOPSim orders more than 16 by chance", case.name);
        check("reference", case, &found);
    }
}

#[test]
fn loggopsim_knows_one_set_of_parameters() {
    for case in cases().iter().take(1) {
        let range = SizeRange { from_bytes: 1, to_bytes: 8, network: case.net };
        let options = Run {
            net: case.net,
            ranges: &[range],
            levels: &[],
            rules: Rules::Compatible,
            noise: &Noise::None,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        assert!(matches!(run(&case.program, &options), Err(RunError::Ranges)));
    }
}

#[test]
fn the_engine_gives_loggopsims_results() {
    for case in cases() {
        let noise = case.strikes.as_ref().map_or(Noise::None, Strikes::window_noise);
        for threads in [1, 2] {
            let options = Run {
                net: case.net,
                ranges: &[],
                levels: &[],
                rules: Rules::Compatible,
                noise: &noise,
                threads,
                progress: quell_sim::loggops::NO_PROGRESS,
            };
            let outcome = run(&case.program, &options).unwrap();
            check("engine", &case, &Found::from(&outcome));
            let (rank, at) = outcome.last();
            if case.expected["finished"] == true {
                assert_eq!(Some(u64::from(rank)), case.expected["max_host"].as_u64(), "{}", case.name);
                assert_eq!(Some(at), case.expected["max_ns"].as_u64(), "{}", case.name);
            }
        }
    }
}

/// The physical rules equal LogGOPSim's without noise, rendezvous and a second CPU, and if no two operations wait for the same
/// CPU from the same instant on.
#[test]
fn the_physical_rules_are_the_same_on_plain_programs() {
    let plain = |case: &Case| {
        let single = case.program.cpus() == 1 && case.strikes.is_none();
        single && case.program.shapes().iter().all(|shape| shape.size <= case.net.eager_limit)
    };
    for case in cases().into_iter().filter(plain) {
        check("physical reference", &case, &physical(&case.program, case.net, &[], &[], None, false).found);
        let options = Run {
            net: case.net,
            ranges: &[],
            levels: &[],
            rules: Rules::Physical,
            noise: &Noise::None,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        check("physical engine", &case, &Found::from(&run(&case.program, &options).unwrap()));
    }
}
