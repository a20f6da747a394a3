//! Damaged archives: whatever they contain, a reader reports it and continues.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{self, events_of};
use fs_err as fs;
use quell_otf2::{Archive, Facts};
use quell_recording::mpi::{BLOCKING, Event, Operation, Run, UNKNOWN, What};

/// An archive with events of all kinds.
fn archive(folder: &Path, repeats: u64) {
    let mut all = support::definitions(2);
    let mut join = all.comms[0].clone();
    join.members = vec![0];
    join.remote = Some(vec![1]);
    all.comms.push(join);
    let mut events = Vec::new();
    for i in 0..repeats {
        let request = i;
        let what = [
            What::Enter(0),
            What::Noise { source: 0, total_ns: i << 20 },
            What::Send { comm: 0, to: 1, tag: 1, bytes: 8, request: BLOCKING },
            What::Send { comm: 1, to: 0, tag: 1, bytes: 8, request },
            What::SendDone { request },
            What::RecvPosted { comm: 0, from: 1, tag: 7, request },
            What::Recv { comm: 0, from: 1, tag: 7, bytes: 1 << 40, request },
            What::Pending { request },
            What::Cancelled { request },
            What::CollectiveBegin,
            What::Collective {
                operation: Operation::Reduce,
                comm: 0,
                root: 1,
                sent: 8,
                received: 0,
                request: BLOCKING,
            },
            What::CollectivePosted { comm: 0, request },
            What::Collective {
                operation: Operation::Barrier,
                comm: 0,
                root: UNKNOWN,
                sent: 0,
                received: 0,
                request,
            },
            What::Fork { threads: 2 },
            What::TeamBegin,
            What::TeamEnd,
            What::Join,
            What::Probed { comm: 0, from: 0, tag: 1 },
            What::Leave(0),
        ];
        events.extend(what.map(|what| Event { time_ns: 1000 * i, what }));
    }
    support::write(folder, &all, Facts::default(), &[events.clone(), events]);
}

const FILES: [&str; 6] =
    ["traces.otf2", "traces.def", "traces/0.evt", "traces/1.evt", "traces/0.def", "traces/1.def"];

/// Random numbers that depend only on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => 0xff,
            1 => 0,
            _ => self.below(256) as u8,
        }
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            // Most of the structure is at the beginning.
            let reach = if self.below(2) == 0 { bytes.len().min(200) } else { bytes.len() };
            let at = self.below(reach);
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => (0..self.below(9)).for_each(|_| bytes.insert(at.min(bytes.len()), self.byte())),
                2 => drop(bytes.drain(at.min(bytes.len())..(at + self.below(9)).min(bytes.len()))),
                3 => (at..(at + 8).min(bytes.len())).for_each(|at| bytes[at] = self.byte()),
                _ if at < bytes.len() => {
                    bytes[at] = if self.below(2) == 0 { self.byte() } else { bytes[at] ^ 1 << self.below(8) }
                }
                _ => {}
            }
        }
    }
}

/// The child process: reads damaged archives, beginning with the case in the variable, and writes down the next case.
#[test]
#[ignore = "what a child of another test does"]
fn victim() {
    let task = std::env::var("QUELL_OTF2_VICTIM").unwrap();
    let mut words = task.split(' ');
    let folder = PathBuf::from(words.next().unwrap());
    let [first, end] = [0; 2].map(|_: u64| words.next().unwrap().parse::<u64>().unwrap());
    let memory = libc::rlimit { rlim_cur: 3 << 30, rlim_max: 3 << 30 };
    // SAFETY: a valid rlimit, and only read.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const memory) };
    let good: Vec<Vec<u8>> =
        FILES.iter().map(|file| fs::read(folder.join("good").join(file)).unwrap()).collect();
    let bad = folder.join("bad");
    fs::create_dir_all(bad.join("traces")).unwrap();
    let mut tally = [0u64; 3];
    for case in first..end {
        // SAFETY: the call has no preconditions; it ends this process if a case hangs.
        unsafe { libc::alarm(20) };
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (case << 20) ^ case);
        for _ in 0..8 {
            random.below(2);
        }
        let which = random.below(FILES.len());
        for (at, (file, bytes)) in FILES.iter().zip(&good).enumerate() {
            let mut bytes = bytes.clone();
            if at == which {
                random.damage(&mut bytes);
            }
            fs::write(bad.join(file), bytes).unwrap();
        }
        fs::write(folder.join("case"), format!("{case} {}", FILES[which])).unwrap();
        match Archive::open(&bad) {
            Ok(mut archive) => {
                let locations = 0..archive.definitions().locations.len();
                let damaged =
                    locations.filter(|&location| events_of(&mut archive, location).1.is_err()).count();
                tally[usize::from(damaged > 0)] += 1;
            }
            Err(_) => tally[2] += 1,
        }
    }
    let [whole, damaged, refused] = tally;
    fs::write(folder.join("tally"), format!("{whole} {damaged} {refused}")).unwrap();
}

#[test]
fn thousands_of_damaged_archives_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |name, usual| std::env::var(name).map_or(usual, |number| number.parse::<u64>().unwrap());
    archive(&folder.path().join("good"), asked("QUELL_OTF2_REPEATS", 40));
    let cases = asked("QUELL_OTF2_CASES", 1000);
    let mut first = 0;
    let mut deaths = Vec::new();
    while first < cases {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "hostile::victim", "--ignored", "--nocapture"]).stdout(Stdio::null());
        child.env("QUELL_OTF2_VICTIM", format!("{} {first} {cases}", folder.path().display()));
        let output = child.output().unwrap();
        if output.status.success() {
            break;
        }
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let case = fs::read_to_string(folder.path().join("case")).unwrap();
        println!("{case}: {:?} {:?}: {printed}", output.status.signal(), output.status.code());
        first = case.split_once(' ').unwrap().0.parse::<u64>().unwrap() + 1;
        deaths.push(case);
    }
    assert!(deaths.is_empty(), "{} of {cases}", deaths.len());
    // Most of the damage was read and detected; the rest is at places that hold no data.
    let tally = fs::read_to_string(folder.path().join("tally")).unwrap();
    let tally: Vec<u64> = tally.split(' ').map(|count| count.parse().unwrap()).collect();
    assert_eq!(tally.iter().sum::<u64>(), cases, "{tally:?} read whole, damaged in events, refused");
    assert!(
        tally[1] > cases / 20 && tally[2] > cases / 20,
        "{tally:?} read whole, damaged in events, refused"
    );
}

#[test]
fn a_group_that_claims_more_members_than_its_record_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path(), 1);
    // The first byte chooses the file.
    let seed = fs::read("../../fuzz/corpus/otf2/group.seed").unwrap();
    fs::write(folder.path().join("traces.def"), &seed[1..]).unwrap();
    let refused = Archive::open(folder.path()).expect_err("16 million members in 88 bytes").to_string();
    assert!(refused.contains("traces.def has a record at byte 61 that does not fit"), "{refused}");
}

#[test]
fn what_stands_before_damage_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path(), 30_000);
    let whole = events_of(&mut Archive::open(folder.path()).unwrap(), 0).0;
    let file = folder.path().join("traces/0.evt");
    let bytes = fs::read(&file).unwrap();
    for keep in [bytes.len() / 2, bytes.len() - 20, 300_000, 100, 10] {
        fs::write(&file, &bytes[..keep]).unwrap();
        let mut archive = Archive::open(folder.path()).unwrap();
        let (events, end) = events_of(&mut archive, 0);
        let damage = end.expect_err(&format!("{keep} of {} bytes: {} events", bytes.len(), events.len()));
        println!("{keep} of {}: {} of {} events: {damage}", bytes.len(), events.len(), whole.len());
        assert!(whole.starts_with(&events));
        assert!(damage.to_string().contains("0.evt"), "{damage}");
        assert_eq!(events_of(&mut archive, 1), (whole.clone(), Ok(())), "the others are whole");
    }
    fs::remove_file(&file).unwrap();
    let (events, end) = events_of(&mut Archive::open(folder.path()).unwrap(), 0);
    assert!(events.is_empty() && end.unwrap_err().to_string().contains("0.evt"));
}

/// The library would allocate and free each of them.
#[test]
fn an_anchor_with_more_properties_than_bytes_is_malformed() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path(), 2);
    let anchor = folder.path().join("traces.otf2");
    let mut bytes = fs::read(&anchor).unwrap();
    let property = bytes.windows(5).position(|bytes| bytes == b"QUELL").unwrap();
    let room = (bytes.len() - property) as u32;
    let mut printed = |count: u32| {
        bytes[property - 4..property].copy_from_slice(&count.to_le_bytes());
        fs::write(&anchor, &bytes).unwrap();
        Archive::open(folder.path()).map(drop).map_err(|error| error.to_string())
    };
    assert!(printed(1).is_ok());
    for count in [room / 2 + 1, u32::MAX] {
        let text = printed(count).unwrap_err();
        assert!(text.contains(&format!("{count} properties")) && text.contains("traces.otf2"), "{text}");
    }
    fs::write(&anchor, vec![0; (16 << 20) + 1]).unwrap();
    assert!(Archive::open(folder.path()).unwrap_err().to_string().contains("no anchor file"));
}

#[test]
fn what_is_no_archive_is_reported_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let printed = |path: &Path| Archive::open(path).unwrap_err().to_string();
    assert!(printed(&path).contains("nothing of that name"));
    archive(&path, 2);
    fs::remove_file(path.join("traces.def")).unwrap();
    let text = printed(&path);
    assert!(text.contains("traces.otf2") && text.contains("definitions cannot be read"), "{text}");
    fs::write(path.join("traces.otf2"), "not so").unwrap();
    println!("{}", printed(&path));
    fs::rename(path.join("traces.otf2"), path.join("other.otf2")).unwrap();
    assert!(printed(&path).contains("other.otf2"));
    fs::write(path.join("third.otf2"), "").unwrap();
    assert!(printed(&path).contains("2 files"));
}
