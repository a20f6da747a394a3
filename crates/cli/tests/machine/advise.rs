//! Advice on the real kernel: quell finds a disturber that a mitigation of the catalogue removes, ranks it first, and the gain that it
//! predicts is measured.

use crate::support::ksm;
use crate::support::tools::{has_two_cpus, may_watch_the_kernel};
use crate::support::tuned::{self, Preset};
use crate::support::{json, run};
use quell_testing::{measure, skip_for_hardware};
use serde_json::Value;
use std::path::Path;

fn at(all: &Value, ranks: u64) -> &Value {
    all.as_array().unwrap().iter().find(|one| one["ranks"] == ranks).unwrap()
}

/// The source with the largest part of the slowdown at a number of ranks.
fn first_at(advice: &Value, ranks: u64) -> &str {
    let scales = advice["scales"].as_array().unwrap();
    let place = scales.iter().position(|scale| scale["ranks"] == ranks).unwrap();
    let part = |source: &&Value| percent(&source["costs"][place]["part_percent"]);
    let sources = advice["sources"].as_array().unwrap();
    sources.iter().max_by(|a, b| part(a).total_cmp(&part(b))).unwrap()["source"].as_str().unwrap()
}

fn percent(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Whether the confidence interval of the gain at the last scale contains zero.
fn unresolved(effects: &Value) -> bool {
    let last = effects.as_array().unwrap().last().unwrap();
    last["gain_ci95_percent"][0].as_f64().is_none_or(|low| low <= 0.0)
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn a_disturber_is_found_and_its_removal_gains_what_was_predicted() {
        let Some(_turn) = tuned::alone() else { return };
        let dir = tempfile::tempdir().unwrap();
        if !has_two_cpus() || !may_watch_the_kernel(dir.path()) {
            return;
        }
        let mut settings = Preset::default();
        let Some(mut ksmd) = ksm::Ksmd::bound_to("1") else {
            return skip_for_hardware("this kernel merges no pages, or its thread cannot be moved");
        };
        // Long time slices make it outweigh the machine's own noise, even on a busy machine.
        ksmd.before_others();
        settings.set("/sys/kernel/mm/ksm/pages_to_scan", "60000");
        settings.set("/sys/kernel/mm/ksm/sleep_millisecs", "100");
        settings.set("/sys/kernel/mm/ksm/run", "1");
        let _memory = ksm::memory(256);
        measure(|n| predict_and_try(dir.path(), &format!("{n}.quell")));
    }

    fn predict_and_try(folder: &Path, name: &str) -> Result<(), String> {
        let recorded = run(folder, &["record", "-o", name, "--cpus", "1", "--duration", "15s"]);
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        let advice = json(folder, &["advise", name, "--ranks", "2,16,4096", "--json"]);
        // Nothing is proposed for a node that others use.
        if !advice["nodes"][0]["load"].is_null() {
            return Err(format!("{:#}", advice["nodes"]));
        }
        if first_at(&advice, 16) != "task:ksmd" {
            return Err(format!("{advice:#}"));
        }
        // At the last scale, one long steal by a hypervisor may weigh as much.
        let last: Vec<&Value> = advice["sources"].as_array().unwrap().iter().take(2).collect();
        if !last.iter().any(|source| source["source"] == "task:ksmd") {
            return Err(format!("{advice:#}"));
        }
        let proposals = advice["mitigations"].as_array().unwrap();
        let ksm = proposals.iter().find(|one| one["id"] == "ksm").unwrap();
        // The same steal makes the gain there unresolved.
        if unresolved(&ksm["effects"]) {
            return Err(format!("{ksm:#}"));
        }
        assert_eq!(ksm["standing"], "possible", "{ksm:#}");
        // Relative to all noise, of which a slow host has more.
        if ksm["worth_it"] != true {
            return Err(format!("{ksm:#}"));
        }
        let predicted = percent(&at(&ksm["effects"], 2)["gain_percent"]);

        let tried = json(
            folder,
            &[
                "tune",
                "try",
                "ksm",
                "--yes",
                "--json",
                "--allow-users",
                "--cpus",
                "1",
                "--ranks",
                "2",
                "--pairs",
                "12",
                "--duration",
                "2s",
            ],
        );
        let tried = &tried["mitigations"][0];
        if tried["verdict"] != "helps" {
            return Err(format!("{tried:#}"));
        }
        let side = |side: &str| percent(&at(&tried["scale"][side], 2)["slowdown_percent"]);
        let measured = side("without") - side("with");
        // The measurement took a minute, in which the machine's other noise may have changed.
        let near = (measured / predicted - 1.0).abs() < 0.5;
        if near { Ok(()) } else { Err(format!("predicted {predicted}, measured {measured}")) }
    }
}
