//! `quell replay`: what it refuses, before it writes anything.

use crate::support::run;

#[test]
fn options_of_virtual_ranks_are_refused_before_a_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let word = |option: &str| format!("--{option} needs --emulate");
    for (option, value, reason) in [
        ("--ranks", "4", word("ranks")),
        ("--quantum", "2ms", word("quantum")),
        ("--phases", "7", word("phases")),
        ("--drift", "1", word("drift")),
        ("--phase-at", "barrier", "--phase-at needs --sync phase or --interleave".into()),
    ] {
        let ended = run(folder.path(), &["replay", "a.quell", "-o", "made", option, value, "--", "true"]);
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{option}: {printed}");
        assert!(printed.contains(&reason), "{option}: {printed}");
        assert!(!folder.path().join("made").exists(), "{option} left its folder");
    }
}
