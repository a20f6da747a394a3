//! What is needed to keep settings after the next boot: files of quell's own for the programs that apply settings at boot.

use super::PlaceState;
use super::lists::Sysctl;
use super::look::{Examined, Examiner, Verdict};
use super::own_file::signed;
use super::unit::disabled;
use crate::catalogue::{Compare, Mitigation};
use crate::place::{ABSENT, Place, chosen};
use crate::sysctl::{PROC_SYS, sysctl_key, sysctl_path};

/// A setting for a drop-in: a file and its value.
struct Line {
    path: String,
    value: String,
}

/// A line of tmpfiles.d that writes a file. `%` and blanks have a meaning there.
fn tmpfiles_line(line: &Line) -> String {
    let path = line.path.replace('%', "%%");
    let value = line.value.replace('\\', "\\\\").replace('%', "%%");
    format!("w {path} - - - - {value}\n")
}

/// The kernel's files that a drop-in of quell's sets at boot, each with its value.
pub(crate) fn set_at_boot(path: &str, text: &str) -> Vec<(String, String)> {
    let is_sysctl = path.starts_with("/etc/sysctl.d/");
    let sysctl = |line: &str| {
        let (key, value) = line.split_once(" = ")?;
        Some((sysctl_path(key), value.to_owned()))
    };
    let tmpfile = |line: &str| {
        let (path, value) = line.strip_prefix("w ")?.split_once(" - - - - ")?;
        Some((path.replace("%%", "%"), value.replace("%%", "%").replace("\\\\", "\\")))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| if is_sysctl { sysctl(line) } else { tmpfile(line) }).collect()
}

impl Examiner<'_> {
    pub(super) fn lasting(&self, mitigation: &Mitigation, looks: &[Examined]) -> Vec<PlaceState> {
        let lines = lines(looks);
        let (sysctl, other): (Vec<Line>, Vec<Line>) =
            lines.into_iter().partition(|line| line.path.starts_with(PROC_SYS));
        let mut place_states = Vec::new();
        let id = &mitigation.id;
        if !sysctl.is_empty() {
            let text = sysctl.iter().map(|line| {
                let key = sysctl_key(&line.path).unwrap_or_default();
                format!("{key} = {}\n", line.value)
            });
            let mut place_state = self.read_at_boot("sysctl.d", id, &text.collect::<String>());
            let overruling = sysctl.iter().flat_map(|line| self.later(id, line));
            place_state.overruled_by = overruling.collect();
            place_states.push(place_state);
        }
        if !other.is_empty() {
            let text: String = other.iter().map(tmpfiles_line).collect();
            place_states.push(self.read_at_boot("tmpfiles.d", id, &text));
        }
        place_states.extend(looks.iter().filter_map(stays_off));
        place_states
    }

    /// A drop-in for a program that reads such files at boot, if the machine has one.
    fn read_at_boot(&self, folder: &str, id: &str, text: &str) -> PlaceState {
        let place = Place::DropIn { path: format!("/etc/{folder}/90-quell-{id}.conf") };
        if !["/etc", "/usr/lib", "/lib"].iter().any(|base| self.root.has(&format!("{base}/{folder}"))) {
            let why = Some(format!("nothing on this machine reads /etc/{folder}"));
            return PlaceState { now: Some(ABSENT.to_owned()), why, ..PlaceState::unreadable(place) };
        }
        let look = self.see(place.clone(), Ok(signed(id, text)), Compare::Equal, false);
        let mut place_state = look.place_state.unwrap_or_else(|| PlaceState::unreadable(place));
        place_state.staged = true;
        place_state
    }

    /// Other programs' files that set this to another value, and are read after ours.
    fn later(&self, id: &str, line: &Line) -> Vec<String> {
        let ours = format!("90-quell-{id}.conf");
        let place = Place::File { path: line.path.clone() };
        let later = |set: &&Sysctl| {
            let name = set.file.rsplit('/').next().unwrap_or_default();
            let is_last = set.file == "/etc/sysctl.conf";
            let others = !name.contains("quell") && (is_last || name > ours.as_str());
            others && set.path == line.path && !place.same(&set.value, &line.value)
        };
        let tell = |set: &Sysctl| {
            format!("{} ({} = {})", set.file, sysctl_key(&set.path).unwrap_or_default(), set.value)
        };
        self.lists.sysctls().iter().filter(later).map(tell).collect()
    }
}

/// What to set at boot: the wanted value, or for a file that already has more than enough, its current value.
fn lines(looks: &[Examined]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for place_state in looks.iter().filter_map(|look| look.place_state.as_ref()) {
        let (Place::File { path }, Some(now), Some(want), false) =
            (&place_state.place, &place_state.now, &place_state.want, place_state.immovable)
        else {
            continue;
        };
        let enough = place_state.done && !place_state.place.same(now, want);
        // A file that shows all words takes only the chosen one.
        let kept = chosen(path, now).unwrap_or(now.trim());
        let value = if enough { kept } else { want.trim() }.to_owned();
        let known = lines.iter().any(|line| line.path == *path);
        if !known && !path.contains(char::is_whitespace) && !value.contains('\n') {
            lines.push(Line { path: path.clone(), value });
        }
    }
    lines
}

/// A unit that would start again at boot, with the state that keeps it off permanently.
fn stays_off(look: &Examined) -> Option<PlaceState> {
    let place_state =
        look.place_state.as_ref().filter(|_| matches!(look.verdict, Verdict::Done | Verdict::Not))?;
    let (Place::Unit { .. }, Some(now)) = (&place_state.place, &place_state.now) else { return None };
    Some(PlaceState { want: Some(disabled(now)?), done: false, ..place_state.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_for_the_boot_is_read_again() {
        let line = Line { path: "/sys/a%b".into(), value: "c:\\d %e".into() };
        let text = signed("test", &tmpfiles_line(&line));
        assert_eq!(set_at_boot("/etc/tmpfiles.d/90-quell-test.conf", &text), [(line.path, line.value)]);
        let text = signed("test", "vm.a = 20\nnet/x/eth0.7 = 1 2\n");
        let read = set_at_boot("/etc/sysctl.d/90-quell-test.conf", &text);
        let of = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        assert_eq!(read, [of("/proc/sys/vm/a", "20"), of("/proc/sys/net/x/eth0.7", "1 2")]);
    }
}
