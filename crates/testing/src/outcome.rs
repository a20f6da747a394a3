//! How a test reports that it made no judgement. `tools/run_tests.py` counts and names what is written here.

use std::fmt::Display;
use std::io::Write as _;

/// The variable with the file to which outcomes are appended, one JSON object per line; `./x test` sets it.
const OUTCOMES: &str = "QUELL_TEST_OUTCOMES";

/// Whether this run has everything that tests may need, so that a skip is a failure.
#[must_use]
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Ends a test, or a part of one, because a tool or a privilege is missing: `return skip("there is no mpicc.mpich")`.
///
/// # Panics
///
/// Under `CI=true`, where everything that tests need must be present.
pub fn skip(why: impl Display) {
    report("skipped", &why);
    assert!(!is_ci(), "skipped, which is a failure under CI=true: {why}");
}

/// The same for what cannot be installed: a second CPU, SMT, a kernel option. Never a failure.
pub fn skip_for_hardware(why: impl Display) {
    report("skipped", &why);
}

/// Ends a test that measured without a result, because its precondition did not hold: the machine was not quiet enough, for instance.
pub fn inconclusive(why: &dyn Display) {
    report("inconclusive", why);
}

/// Notes that a test measures, so that the share of inconclusive ones can be counted.
pub(crate) fn measured() {
    append("measured", &"");
}

/// Prints an outcome, and appends it to the file.
#[expect(clippy::print_stderr, reason = "tests have no printer")]
fn report(outcome: &str, why: &dyn Display) {
    eprintln!("{outcome}: {why}");
    append(outcome, why);
}

#[expect(clippy::print_stderr, reason = "tests have no printer")]
fn append(outcome: &str, why: &dyn Display) {
    let Some(path) = std::env::var_os(OUTCOMES) else { return };
    let line = serde_json::json!({"test": test_name(), "outcome": outcome, "why": why.to_string()});
    // One write of a short line to a file opened for appending is atomic with respect to other writers.
    let file = fs_err::OpenOptions::new().append(true).create(true).open(std::path::PathBuf::from(path));
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
        eprintln!("the outcome of this test is lost: {error}");
    }
}

/// The name of the running test, with its binary if the runner passes that.
fn test_name() -> String {
    let thread = std::thread::current().name().unwrap_or("a thread of a test").to_owned();
    let name = std::env::var("NEXTEST_TEST_NAME").unwrap_or(thread);
    let binary = std::env::var("NEXTEST_BINARY_ID").ok();
    let binary = binary.or_else(|| {
        let program = std::env::current_exe().ok()?;
        // Cargo appends a hash to the name.
        let stem = program.file_stem()?.to_string_lossy().into_owned();
        Some(stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned()))
    });
    binary.map_or(name.clone(), |binary| format!("{binary} {name}"))
}
