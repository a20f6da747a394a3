//! Call sites as a reader knows them: the function, and its file and line, from the symbols and the debug information of the program.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use addr2line::Loader;
use fs_err as fs;

use crate::one_line;

/// A place in the program, with demangled C++ names, without parameters.
pub(super) fn readable(site: &str) -> String {
    let (symbol, rest) = site.split_once(' ').unwrap_or((site, ""));
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    match cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
    {
        Some(name) if !rest.is_empty() => format!("{name} {rest}"),
        Some(name) => name,
        None => site.to_owned(),
    }
}

/// The program and its libraries, each opened at its first call site.
#[derive(Default)]
pub(super) struct Objects {
    opened: HashMap<PathBuf, Option<Object>>,
}

struct Object {
    /// When it was last changed.
    changed: SystemTime,
    symbols: Loader,
}

impl Object {
    fn open(path: &Path) -> Option<Self> {
        let facts = fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { changed: facts.modified().ok()?, symbols: Loader::new(path).ok()? })
    }

    /// `function (file:line)`, or `function (object)` without debug information.
    fn describe(&self, address: u64, object: &str) -> Option<String> {
        let symbol = self.symbols.find_symbol(address);
        let frame = self.symbols.find_frames(address).ok().and_then(|mut frames| frames.next().ok()?);
        let name =
            frame.as_ref().and_then(|frame| Some(frame.function.as_ref()?.raw_name().ok()?.into_owned()));
        let function = name.or_else(|| symbol.map(str::to_owned))?;
        // Compilers make functions of parallel regions: GCC's, and LLVM's.
        let outer = function.split("._omp_fn.").next().and_then(|name| name.split(".omp_outlined").next());
        let function = outer.filter(|name| !name.is_empty()).unwrap_or(&function);
        let place = frame.and_then(|frame| {
            let location = frame.location?;
            Some(format!("{}:{}", file_name(location.file?)?, location.line?))
        });
        let place = place.unwrap_or_else(|| object.to_owned());
        Some(one_line(&readable(&format!("{function} ({place})"))).to_string())
    }
}

fn file_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

impl Objects {
    /// The call at an address of an object, given as `0xADDRESS PATH`. `None` if the object does not say, or has changed since the log was
    /// written.
    pub fn site(&mut self, place: &str, written: SystemTime) -> Option<String> {
        let (address, path) = place.strip_prefix("0x")?.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let opened = self.opened.entry(PathBuf::from(path)).or_insert_with_key(|path| Object::open(path));
        let object = opened.as_ref().filter(|object| object.changed <= written)?;
        object.describe(address, file_name(path)?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[inline(never)]
    fn somewhere() -> u32 {
        line!()
    }

    /// `0xADDRESS PATH` of that function, as the tracer gives it.
    fn place() -> String {
        let path = std::env::current_exe().unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let first = maps.lines().find(|line| line.ends_with(path.to_str().unwrap())).unwrap();
        let begin = usize::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
        format!("0x{:x} {}", somewhere as fn() -> u32 as usize - begin, path.display())
    }

    #[test]
    fn a_site_is_a_function_with_its_file_and_line() {
        let site = Objects::default().site(&place(), SystemTime::now()).unwrap();
        assert!(site.contains("::somewhere"), "{site}");
        let (_, line) = site.strip_suffix(')').unwrap().rsplit_once("(sites.rs:").unwrap();
        // Its first instruction is of any of its three lines.
        assert!((somewhere() - 1..=somewhere() + 1).contains(&line.parse().unwrap()), "{site}");
    }

    #[test]
    fn a_program_that_changed_since_is_not_asked() {
        let changed = fs::metadata(std::env::current_exe().unwrap()).unwrap().modified().unwrap();
        let site = |written| Objects::default().site(&place(), written);
        assert!(site(changed).is_some());
        assert_eq!(site(changed - Duration::from_nanos(1)), None);
    }

    #[test]
    fn what_names_no_object_is_no_site() {
        let text = tempfile::NamedTempFile::new().unwrap();
        fs::write(text.path(), "no object").unwrap();
        let text = format!("0x10 {}", text.path().display());
        for place in
            ["", "0x", "0x10", "0x10 ", "0x10 /", "0xzz /bin/true", "0x10 /dev/zero", "0x10 /missing", &text]
        {
            assert_eq!(Objects::default().site(place, SystemTime::now()), None, "{place}");
        }
        let beyond = place().replace("0x", "0xffffffff");
        assert_eq!(Objects::default().site(&beyond, SystemTime::now()), None);
    }
}
