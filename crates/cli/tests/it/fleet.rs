//! Many synthetic nodes, some of which have a fault, analysed by the whole program.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support;
use crate::support::{json, run};
use serde_json::Value;

const WAYS: &str = "daemon,ticks-often,ticks-long,storm,hiccup,steal,one-cpu";

/// Generates a fleet in `fleet`; returns the nodes with a fault, and their faults.
fn made(folder: &Path, more: &[&str]) -> Vec<(String, String)> {
    let args = [&["generate-fleet", "-o", "fleet", "--cpus", "2", "--ways", WAYS], more].concat();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ill = json(folder, &args)["ill"].as_array().unwrap().clone();
    ill.iter().map(|one| (text(&one["node"]), text(&one["way"]))).collect()
}

fn named(fleet: &Value) -> BTreeSet<String> {
    fleet["unlike"].as_array().unwrap().iter().map(|one| one["node"].as_str().unwrap().to_owned()).collect()
}

fn why<'a>(fleet: &'a Value, node: &str) -> &'a Value {
    let nodes = fleet["unlike"].as_array().unwrap();
    &nodes.iter().find(|one| one["node"] == node).unwrap()["why"][0]
}

#[test]
fn each_way_of_being_ill_is_named_among_200_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let ill = made(dir.path(), &["--nodes", "200", "--ill", "7", "--seed", "3"]);
    let names: BTreeSet<String> = ill.iter().map(|one| one.0.clone()).collect();
    let fleet = json(dir.path(), &["advise", "fleet", "--ranks", "64,400,4000", "--json"]);
    assert_eq!(fleet["schema"], "quell.fleet/2");
    assert_eq!(named(&fleet), names, "{:#}", fleet["unlike"]);
    for (node, way) in &ill {
        let source = why(&fleet, node)["source"].as_str().unwrap();
        let expected: &[&str] = match way.as_str() {
            "daemon" => &["task:crawld"],
            "ticks-often" | "ticks-long" => &["tick"],
            "storm" => &["irq:nvme0q1"],
            "hiccup" => &["unattributed"],
            "steal" => &["steal"],
            // All of its sources last longer; which of them has the most time depends on the CPU.
            _ => &["tick", "irq:eth0", "softirq:TIMER", "task:kworker"],
        };
        assert!(expected.contains(&source), "{way}: {:#}", why(&fleet, node));
    }
    let scales = fleet["cost"]["scales"].as_array().unwrap();
    let of = |scale: usize, figure: &str| scales[scale][figure].as_f64().unwrap();
    assert!(of(1, "mixture_percent") > 1.5 * of(1, "without_unlike_percent"), "{scales:#?}");
    assert_eq!(scales[1]["nodes"], 200);
    let slowest: Vec<&str> = fleet["cost"]["slowest"]
        .as_array()
        .unwrap()
        .iter()
        .take(2)
        .map(|one| one["node"].as_str().unwrap())
        .collect();
    let hiccup = ill.iter().find(|one| one.1 == "hiccup").unwrap();
    assert_eq!(slowest[0], hiccup.0, "5 ms once a second on each CPU outweigh all else");
    assert!(names.contains(slowest[1]), "{slowest:?}");
    // The same again, on one thread.
    let mut again = support::quell(dir.path());
    again.env("RAYON_NUM_THREADS", "1").args(["advise", "fleet", "--ranks", "64,400,4000", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&again.output().unwrap().stdout).unwrap(), fleet);

    let text = String::from_utf8(run(dir.path(), &["advise", "fleet"]).stdout).unwrap();
    for part in ["7 of 200 nodes are outliers", "task:crawld", "quell show fleet/", "quell compare fleet/"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let show = json(dir.path(), &["show", "fleet", "--json"]);
    assert_eq!(named(&show["fleet"]), names);
    let text = |args: &[&str]| String::from_utf8(run(dir.path(), args).stdout).unwrap();
    let (short, long) = (text(&["show", "fleet"]), text(&["show", "fleet", "--all"]));
    assert!(
        short.contains("... and 160 more (--all shows them)") && short.contains("task:crawld"),
        "{short}"
    );
    assert!(long.contains("node00199") && !long.contains("more (--all"), "{long}");
}

#[test]
fn without_sources_the_ill_are_named_too() {
    let dir = tempfile::tempdir().unwrap();
    let ill = made(dir.path(), &["--nodes", "200", "--ill", "7", "--seed", "4", "--no-sources"]);
    let names: BTreeSet<String> = ill.into_iter().map(|one| one.0).collect();
    let fleet = json(dir.path(), &["advise", "fleet", "--json"]);
    assert_eq!(named(&fleet), names, "{:#}", fleet["unlike"]);
    assert_eq!(fleet["nodes_with_sources"], 0);
    let text = String::from_utf8(run(dir.path(), &["advise", "fleet"]).stdout).unwrap();
    assert!(text.contains("sources unknown"), "{text}");
}

#[test]
fn damaged_few_and_healthy_nodes_are_reported_as_such() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path(), &["--nodes", "9", "--duration", "2s"]);
    fs_err::write(dir.path().join("fleet/node00004.quell/detours.parquet"), "no table").unwrap();
    let fleet = json(dir.path(), &["advise", "fleet", "--json"]);
    assert_eq!(
        (&fleet["nodes"], &fleet["unread"][0]["name"]),
        (&Value::from(8), &Value::from("node00004.quell"))
    );
    assert_eq!(named(&fleet).len(), 0);
    fs_err::remove_dir_all(dir.path().join("fleet/node00001.quell")).unwrap();
    let fleet = json(dir.path(), &["advise", "fleet", "--json"]);
    assert_eq!(fleet["warnings"][0]["code"], "few-nodes", "{:#}", fleet["warnings"]);
    let none = run(dir.path(), &["advise", "."]);
    assert_eq!(none.status.code(), Some(1));
}
