//! Lists the catalogue's files, which are embedded in quell.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fs_err as fs;

fn main() {
    let folder = PathBuf::from(variable("OUT_DIR"));
    list_files("catalogue", "catalogue", "FILES", &folder);
    list_files("catalogue/profiles", "profiles", "PROFILES", &folder);
}

/// Writes `LIST.rs`: the name and text of each TOML file in a folder of this crate.
fn list_files(from: &str, list: &str, constant: &str, folder: &Path) {
    println!("cargo::rerun-if-changed={from}");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(from);
    let entries = fs::read_dir(&here).expect("the catalogue can be listed");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the catalogue can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let name = |file: &Path| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let row = |file: &PathBuf| format!("    ({:?}, include_str!({file:?})),\n", name(file));
    let rows: String = files.iter().map(row).collect();
    let text = format!(
        "/// The name and the text of each file.\npub(crate) const {constant}: &[(&str, &str)] = &[\n{rows}];\n"
    );
    fs::write(folder.join(format!("{list}.rs")), text).expect("what was made can be written");
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}
