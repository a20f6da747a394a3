//! Compiles the sources in `mpi/` with the site's wrapper, once for each MPI and version of quell.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fs_err as fs;

use super::{MpiError, Wrapper, last_words};
use crate::leftovers;

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../mpi/", $name)))),*]
    };
}

/// A program or library to build with a site's MPI.
#[derive(Debug)]
pub struct Product {
    /// The file name, which a program shows in process lists and in the kernel recorder's rows.
    name: &'static str,
    /// The sources, which are embedded in quell.
    sources: &'static [(&'static str, &'static str)],
    make: fn(&Product, &Wrapper, &Path) -> std::io::Result<Output>,
}

/// Begin of the names of folders in which products are being built.
const MAKING: &str = ".making-";

/// The benchmarks' program.
pub const BENCH: Product = Product {
    name: "quell-bench",
    sources: sources![
        "rank_file.h",
        "bench/bench.h",
        "bench/clocks.c",
        "bench/files.c",
        "bench/loggp.c",
        "bench/main.c",
        "bench/ops.c",
        "bench/phases.c",
        "bench/place.c",
        "bench/work.c",
    ],
    make: program,
};

/// The library that traces a program's MPI calls.
pub const TRACER: Product = Product {
    name: "quell-trace.so",
    sources: sources![
        "trace_log.h",
        "trace/calls.h",
        "trace/clock.c",
        "trace/collective.c",
        "trace/collectives.h",
        "trace/comm.c",
        "trace/complete.c",
        "trace/create.c",
        "trace/entry.c",
        "trace/life.c",
        "trace/log.c",
        "trace/message.c",
        "trace/neighbor.c",
        "trace/neighbors.h",
        "trace/node.c",
        "trace/node.h",
        "trace/onesided.c",
        "trace/onesided.h",
        "trace/ompt.c",
        "trace/openmp.c",
        "trace/openmp.h",
        "trace/pointtopoint.c",
        "trace/pointtopoint.h",
        "trace/regions.c",
        "trace/regions.h",
        "trace/request.c",
        "trace/site.c",
        "trace/trace.h",
        "../crates/kernel/include/quell_metrics.h",
        "../crates/kernel/include/quell_metrics_open.h",
        "../crates/kernel/include/quell_metrics_read.h",
    ],
    make: library,
};

/// A product that is ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it was compiled by this call.
    pub fresh: bool,
}

/// Compiles a product into `cache`, unless it is there already.
///
/// # Errors
/// [`MpiError::Compiler`] with the compiler's output, or [`MpiError::Io`].
pub fn build(product: &Product, wrapper: &Wrapper, cache: &Path) -> Result<Built, MpiError> {
    let folder = cache.join(format!("{:016x}", key(product, wrapper)));
    let path = folder.join(product.name);
    if path.is_file() {
        return Ok(Built { path, fresh: false });
    }
    fs::create_dir_all(cache)?;
    // Built in a folder of its own and renamed, so that two builds at once do not collide, on whichever hosts that share the cache.
    let making = leftovers::new_in(cache, MAKING)?;
    let made = making.path().join("made");
    compile(product, wrapper, &made)?;
    match fs::rename(&made, &folder) {
        Err(_) if path.is_file() => {}
        other => other?,
    }
    Ok(Built { path, fresh: true })
}

/// A hash of everything that the product depends on.
fn key(product: &Product, wrapper: &Wrapper) -> u64 {
    let mut hash = DefaultHasher::new();
    (product.name, product.sources, &wrapper.compiler, &wrapper.version).hash(&mut hash);
    let changed = wrapper.compiler.metadata().and_then(|facts| facts.modified());
    changed.ok().hash(&mut hash);
    hash.finish()
}

fn compile(product: &Product, wrapper: &Wrapper, folder: &Path) -> Result<(), MpiError> {
    for (name, text) in product.sources {
        // Headers that this checkout keeps elsewhere are put below one folder here.
        let path = match name.strip_prefix("../crates/kernel/") {
            Some(within) => folder.join(within),
            None => folder.join(name),
        };
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    let output = (product.make)(product, wrapper, folder)?;
    if output.status.success() && folder.join(product.name).is_file() {
        return Ok(());
    }
    let printed = last_words(&String::from_utf8_lossy(&output.stderr));
    Err(MpiError::Compiler { compiler: wrapper.compiler.clone(), printed })
}

fn units(product: &Product) -> impl Iterator<Item = &'static str> {
    product.sources.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"))
}

fn tool(name: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn program(product: &Product, wrapper: &Wrapper, folder: &Path) -> std::io::Result<Output> {
    let options = ["-std=gnu11", "-O2", "-o", product.name];
    tool(&wrapper.compiler, folder).args(options).args(units(product)).arg("-lm").output()
}

/// Builds a library that is loaded into launchers and shells too, and must not pull an MPI into them: the wrapper only compiles, and the
/// compiler behind it links, without MPI.
fn library(product: &Product, wrapper: &Wrapper, folder: &Path) -> std::io::Result<Output> {
    let options = ["-std=gnu11", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-I", "include", "-c"];
    let compiled = tool(&wrapper.compiler, folder).args(options).args(units(product)).output()?;
    if !compiled.status.success() {
        return Ok(compiled);
    }
    let shown = tool(&wrapper.compiler, folder).arg("-show").output()?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let [linker, before @ ..] = &compiler_of(&shown)[..] else { return Ok(compiled) };
    let objects = units(product).filter_map(|name| Path::new(name).file_stem());
    let objects = objects.map(|stem| Path::new(stem).with_extension("o"));
    tool(linker, folder)
        .args(before)
        .args(["-shared", "-o", product.name])
        .args(objects)
        .args(["-ldl", "-lpthread"])
        .output()
}

/// The compiler in what a wrapper shows, which may be several words, such as `ccache gcc` or `env NAME=VALUE gcc`: those before its options.
fn compiler_of(shown: &str) -> Vec<&str> {
    let words: Vec<&str> = shown.split_whitespace().take_while(|word| !word.starts_with('-')).collect();
    if words.is_empty() { vec!["cc"] } else { words }
}

#[cfg(test)]
mod tests {
    use super::compiler_of;

    #[test]
    fn a_compiler_may_be_several_words() {
        assert_eq!(compiler_of("gcc -I/usr/include -pthread -lmpi"), ["gcc"]);
        assert_eq!(
            compiler_of("env CCACHE_DIR=/c ccache gcc -Wl,-z -I/x"),
            ["env", "CCACHE_DIR=/c", "ccache", "gcc"]
        );
        assert_eq!(compiler_of(""), ["cc"]);
    }
}
