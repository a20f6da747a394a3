//! Stops of all CPUs at the same time, which quell must distinguish from noise that each CPU has on its own.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::disturbers::{Burn, Burner};
use crate::support::placed::{inside, span};
use crate::support::tools::{has_two_cpus, is_root};
use crate::support::{cpus, json, run};
use quell_recording::Recording;
use quell_testing::{machine, measure};

/// Starts that lie further apart are no stop of both CPUs.
const APART_NS: u64 = 20_000;

/// Time that each task burns: far longer than timer ticks, which strike all CPUs at once on some machines, and take up to 0.1 ms under some
/// hypervisors.
const BURN_NS: u64 = 500_000;

/// Records the last two CPUs while a task burns [`BURN_NS`] on each, in its own period; returns the burns of both and what `show` found.
fn burnt(folder: &Path, periods_ns: [u64; 2]) -> ([Vec<Burn>; 2], serde_json::Value) {
    let stop = AtomicBool::new(false);
    let chosen = [cpus() - 2, cpus() - 1];
    let list = format!("{},{}", chosen[0], chosen[1]);
    let mut burns = std::thread::scope(|scope| {
        let burners = [0, 1].map(|i| {
            let burner = Burner { cpu: chosen[i], every_ns: periods_ns[i], burn_ns: BURN_NS };
            let stop = &stop;
            scope.spawn(move || burner.run(stop))
        });
        let args = ["record", "-q", "-o", "a.quell", "--cpus", &list, "--duration", "4s", "--sources", "off"];
        let output = run(folder, &args);
        stop.store(true, Ordering::SeqCst);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        burners.map(|burner| burner.join().unwrap())
    });
    let recording = Recording::open(&folder.join("a.quell")).unwrap();
    for burns in &mut burns {
        burns.retain(|burn| inside(burn.start, span(&recording)) && !burn.interrupted);
    }
    let show = json(folder, &["show", "a.quell", "--json"]);
    fs_err::remove_dir_all(folder.join("a.quell")).unwrap();
    (burns, show["simultaneous"].clone())
}

/// Number of strikes of lengths that two burns can have: both share at least half of the time that either takes.
fn strikes(found: &serde_json::Value) -> u64 {
    let bands = found["bands"].as_array().unwrap();
    let is_burn =
        |band: &&serde_json::Value| band["from_ns"].as_u64().is_some_and(|from| from >= BURN_NS / 2);
    bands.iter().filter(is_burn).map(|band| band["strikes"].as_u64().unwrap()).sum()
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn stops_of_both_cpus_are_distinguished_from_noise_of_each() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !has_two_cpus() || !is_root() {
            return;
        }
        measure(|_| {
            let ([first, second], found) = burnt(dir.path(), [20_000_000; 2]);
            let near = |burn: &&Burn| second.iter().any(|other| other.start.abs_diff(burn.start) < APART_NS);
            let stops = first.iter().filter(near).count() as u64;
            if stops < 50 || 100 * strikes(&found) < 95 * stops {
                return Err(format!(
                    "{stops} stops of both CPUs, of {} on one of them: {found}",
                    first.len()
                ));
            }
            Ok(())
        });
        measure(|_| {
            // Without a small common multiple, at which both would burn at once.
            let ([first, second], found) = burnt(dir.path(), [20_000_000, 23_054_111]);
            let burns = (first.len() + second.len()) as u64;
            if burns < 100 || 100 * strikes(&found) > burns {
                return Err(format!("{burns} independent burns: {found}"));
            }
            Ok(())
        });
    }
}
