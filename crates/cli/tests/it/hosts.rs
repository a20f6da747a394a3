//! `show` of a folder with recordings of many hosts.

use crate::support::{json, run, transcript};
use serde_json::Value;

#[test]
fn a_damaged_recording_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("runs");
    fs_err::create_dir_all(hosts.join("broken.quell")).unwrap();
    fs_err::write(hosts.join("broken.quell/manifest.json"), "{").unwrap();
    for (name, gap) in [("n1", 500_000u64), ("n2", 500_000), ("n3", 500_000), ("n4", 50_000)] {
        let row = |i: u64| format!("0,{},2000,false\n", i * gap);
        let text: String = (1..400).map(row).collect();
        fs_err::write(folder.path().join("rows.csv"), "cpu,start_ns,duration_ns,own\n".to_owned() + &text)
            .unwrap();
        let target = hosts.join(format!("{name}.quell"));
        let output = run(folder.path(), &["convert", "rows.csv", &target.display().to_string()]);
        assert!(output.status.success(), "{name}: {output:?}");
    }
    insta::assert_snapshot!(transcript(folder.path(), &["show", "runs"]));
    let refused = run(folder.path(), &["show", "runs", "--by", "task"]);
    assert_eq!(refused.status.code(), Some(2));
    let show = json(folder.path(), &["show", "runs", "--by", "source", "--json"]);
    assert_eq!(show["schema"], "quell.show-hosts/2");
    assert_eq!((show["unread"][0]["name"].as_str(), &show["sources"]), (Some("broken.quell"), &Value::Null));
}
