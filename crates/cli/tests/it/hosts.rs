//! `show` of a folder with recordings of many hosts.

use std::path::Path;

use crate::support::{json, run, transcript};
use serde_json::Value;

/// Makes `runs`: three hosts with equal noise, and one with ten times as much.
fn make_hosts(folder: &Path) {
    fs_err::create_dir_all(folder.join("runs")).unwrap();
    for (name, gap) in [("n1", 500_000u64), ("n2", 500_000), ("n3", 500_000), ("n4", 50_000)] {
        let row = |i: u64| format!("0,{},2000,false\n", i * gap);
        let text: String = (1..400).map(row).collect();
        fs_err::write(folder.join("rows.csv"), "cpu,start_ns,duration_ns,own\n".to_owned() + &text).unwrap();
        let target = folder.join("runs").join(format!("{name}.quell"));
        let output = run(folder, &["convert", "rows.csv", &target.display().to_string()]);
        assert!(output.status.success(), "{name}: {output:?}");
    }
}

#[test]
fn several_recordings_are_shown_and_reported_together() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_hosts(folder);
    let [first, last] = ["runs/n1.quell", "runs/n4.quell"];
    insta::assert_snapshot!("several", transcript(folder, &["show", last, first]));
    insta::assert_snapshot!(
        "one_of_several_is_missing",
        transcript(folder, &["show", first, "runs/n9.quell"])
    );
    let page = |words: &[&str], name: &str| {
        let output = run(folder, words);
        assert!(output.status.success(), "{output:?}");
        let text = fs_err::read_to_string(folder.join(name)).unwrap();
        let (_, data) = text.split_once("id=\"data\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        serde_json::from_str::<Value>(data).unwrap()["hosts"]["hosts"].as_array().unwrap().len()
    };
    assert_eq!(page(&["report", "runs"], "runs.html"), 4);
    assert_eq!(page(&["report", first, last], "runs/hosts.html"), 2);
    let refused = run(folder, &["report", "runs", "--sync", "start"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_damaged_recording_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("runs");
    fs_err::create_dir_all(hosts.join("broken.quell")).unwrap();
    fs_err::write(hosts.join("broken.quell/manifest.json"), "{").unwrap();
    make_hosts(folder.path());
    insta::assert_snapshot!(transcript(folder.path(), &["show", "runs"]));
    let refused = run(folder.path(), &["show", "runs", "--by", "task"]);
    assert_eq!(refused.status.code(), Some(2));
    let show = json(folder.path(), &["show", "runs", "--by", "source", "--json"]);
    assert_eq!(show["schema"], "quell.show-hosts/2");
    assert_eq!((show["unread"][0]["name"].as_str(), &show["sources"]), (Some("broken.quell"), &Value::Null));
}
