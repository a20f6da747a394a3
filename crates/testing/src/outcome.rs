//! How a test that did not judge says so. `tools/run_tests.py` counts and names what is written here.

use std::fmt::Display;
use std::io::Write as _;

/// The file that outcomes are appended to, one JSON object a line; `./x test` sets it.
const OUTCOMES: &str = "QUELL_TEST_OUTCOMES";

/// Whether this run has all that tests may need, so that a skip is a failure.
#[must_use]
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Ends a test, or a part of one, for which a tool or a privilege is missing: `return skip("there is no mpicc.mpich")`.
///
/// # Panics
///
/// Under `CI=true`, where everything is there that tests need.
pub fn skip(why: impl Display) {
    report("skipped", &why);
    assert!(!is_ci(), "skipped, which is a failure under CI=true: {why}");
}

/// The same for what no installation can bring: a second CPU, SMT, a kernel's option. No failure anywhere.
pub fn skip_for_hardware(why: impl Display) {
    report("skipped", &why);
}

/// Ends a test that measured and could not tell, for the machine was not quiet enough.
pub(crate) fn inconclusive(why: &dyn Display) {
    report("inconclusive", why);
}

/// Notes that a test measures, for who counts how many of those could tell.
pub(crate) fn measured() {
    append("measured", &"");
}

/// Says it aloud, and to who counts.
#[expect(clippy::print_stderr, reason = "tests have no printer")]
fn report(outcome: &str, why: &dyn Display) {
    eprintln!("{outcome}: {why}");
    append(outcome, why);
}

#[expect(clippy::print_stderr, reason = "tests have no printer")]
fn append(outcome: &str, why: &dyn Display) {
    let Some(path) = std::env::var_os(OUTCOMES) else { return };
    let line = serde_json::json!({"test": test_name(), "outcome": outcome, "why": why.to_string()});
    // One write of a short line to a file opened for appending is not torn by others.
    let file = fs_err::OpenOptions::new().append(true).create(true).open(std::path::PathBuf::from(path));
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
        eprintln!("the outcome of this test is lost: {error}");
    }
}

/// The running test, with its binary where the runner says it.
fn test_name() -> String {
    let thread = std::thread::current().name().unwrap_or("a thread of a test").to_owned();
    let name = std::env::var("NEXTEST_TEST_NAME").unwrap_or(thread);
    let binary = std::env::var("NEXTEST_BINARY_ID").ok();
    let binary = binary.or_else(|| {
        let program = std::env::current_exe().ok()?;
        // Cargo ends the name with a hash.
        let stem = program.file_stem()?.to_string_lossy().into_owned();
        Some(stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned()))
    });
    binary.map_or(name.clone(), |binary| format!("{binary} {name}"))
}
