//! Any file content gives a result or an error; and what was written can be read again.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use quell_recording::formats::{self, Format};
use quell_recording::{Bucket, HistogramKind, Interval, Method, Nanos, Recording, Source};

fn names() -> Vec<PathBuf> {
    let folders =
        ["tests/samples", "tests/data"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let files = folders.iter().flat_map(|folder| fs_err::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_none_or(|extension| extension != "md"));
    files.sort();
    files
}

static SAMPLES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| names().iter().map(|path| fs_err::read(path).unwrap()).collect());

/// Fields that a hostile writer would use.
const WORDS: [&str; 14] = [
    "18446744073709551616",
    "-1",
    "nan",
    "inf",
    "1e309",
    "\n",
    "",
    ":",
    "\t",
    "\u{0}",
    "[9]",
    "0",
    "4294967296",
    ",",
];

fn exported(recording: &Recording, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    formats::export(recording, format, &mut out).unwrap();
    out
}

fn again(recording: &Recording, format: Format) -> Recording {
    formats::parse(Path::new("again"), &exported(recording, format)).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that what was read is valid: it can be written and read again.
fn holds(recording: &Recording) {
    for one in recording.intervals.iter().flat_map(|side| &side.intervals) {
        assert!(one.start.checked_add(one.duration).is_some() && one.net <= one.duration);
    }
    let room: &[Format] = match recording.manifest.method {
        Method::Phases => &[],
        Method::Detour => &[Format::Csv, Format::Chrome, Format::Perfetto],
        Method::Histogram => &[Format::Csv],
        _ => &[Format::Csv, Format::Chrome, Format::Perfetto],
    };
    for format in room {
        let out = exported(recording, *format);
        if *format == Format::Csv {
            let read = formats::parse(Path::new("again"), &out).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                read.histograms.iter().map(|h| h.buckets.len()).sum::<usize>(),
                recording.histograms.iter().map(|h| h.buckets.len()).sum::<usize>()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..400), head in select(vec![&b""[..], b"\x17\x08\x44tracing6\0\0\x08", b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0", b"# tracer: x\n", b"# RTLA \n", b"{", b"Core: 1\n"])) {
        let bytes = [head, &bytes].concat();
        let _ = formats::parse_all(Path::new("in.1"), &bytes);
    }

    #[test]
    fn mutated_samples_are_read_or_refused(
        which in any::<Index>(), at in any::<Index>(), word in select(WORDS.to_vec()), drop in 0..40usize, cut in any::<Index>(), truncate in any::<bool>(),
    ) {
        let mut bytes = which.get(&SAMPLES).clone();
        let from = at.index(bytes.len());
        let to = (from + drop).min(bytes.len());
        bytes.splice(from..to, word.bytes());
        if truncate && !bytes.is_empty() {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(found) = formats::parse_all(Path::new("in.1"), &bytes) {
            holds(&found.recording);
        }
    }

    #[test]
    fn flipped_bits_of_a_trace_dat_are_read_or_refused(which in 0..3usize, flips in vec((any::<Index>(), any::<u8>()), 1..6)) {
        let files = names();
        let dats: Vec<&PathBuf> = files.iter().filter(|path| path.extension().is_some_and(|e| e == "dat") && path.to_string_lossy().contains("trace_v")).collect();
        let mut bytes = fs_err::read(dats[which]).unwrap();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        if let Ok(found) = formats::parse_all(Path::new("in"), &bytes) {
            holds(&found.recording);
        }
    }

    #[test]
    fn histograms_survive_csv_and_hdrhistogram(buckets in vec((0..3u32, 0..3u32, 0..6usize, 0..1u64 << 40, 0..10_000u64, 1..1u64 << 30), 1..30)) {
        let mut text = String::from("cpu,thread,kind,from_ns,to_ns,count\n");
        for (cpu, thread, kind, from, length, count) in &buckets {
            let kind = HistogramKind::ALL[*kind];
            text += &format!("{cpu},{thread},{kind},{from},{},{count}\n", from + length);
        }
        let first = formats::parse(Path::new("in"), text.as_bytes()).unwrap();
        prop_assert_eq!(&again(&first, Format::Csv).histograms, &first.histograms);
        let logged = again(&first, Format::HdrHistogram);
        for (a, b) in first.histograms.iter().zip(&logged.histograms) {
            prop_assert_eq!(a.cpu, b.cpu);
            let sums = |buckets: &[Bucket]| {
                buckets.chunk_by(|a, b| (a.thread, a.kind) == (b.thread, b.kind)).map(|s| (s[0].thread, s[0].kind, s.iter().map(|b| b.count).sum::<u64>())).collect::<Vec<_>>()
            };
            prop_assert_eq!(sums(&a.buckets), sums(&b.buckets));
            // The longest keeps three digits.
            let longest = |buckets: &[Bucket]| buckets.iter().map(|b| b.to.as_nanos()).max().unwrap() as f64;
            prop_assert!((longest(&a.buckets) / longest(&b.buckets).max(1.0) - 1.0).abs() < 2e-3 || longest(&a.buckets) < 4.0);
        }
    }

    #[test]
    fn intervals_survive_csv(rows in vec((0..2u32, 0..1u64 << 40, 0..1u64 << 30, any::<bool>(), "[ -~é]{1,12}", any::<u32>(), proptest::option::of("[ -~]{1,9}")), 1..20)) {
        let mut made = formats::parse(Path::new("in"), b"cpu,start_ns,duration_ns,net_ns,source,pid,victim,detail,cause\n0,0,1,1,tick,0,0,,\n1,0,1,1,nmi,0,0,,\n").unwrap();
        for (cpu, start, duration, half, comm, pid, detail) in rows {
            let duration = Nanos::from_nanos(duration);
            let net = if half { Nanos::from_nanos(duration.as_nanos() / 2) } else { duration };
            let (start, detail) = (Nanos::from_nanos(start), detail.map(Into::into));
            made.intervals[cpu as usize].intervals.push(Interval { start, duration, net, source: Source::Task(comm.into()), pid, victim: 7, detail, cause: None });
        }
        for side in &mut made.intervals {
            side.intervals.sort_by_key(|one| one.start);
        }
        prop_assert_eq!(again(&made, Format::Csv).intervals, made.intervals);
    }

    #[test]
    fn quanta_survive_csv(rows in vec((0..3u32, 0..1u64 << 40, any::<u32>(), any::<u64>()), 1..20), ftq in any::<bool>()) {
        let method = if ftq { "ftq" } else { "fwq" };
        let mut text = String::from("method,cpu,start_ns,duration_ns,work\n");
        for (cpu, start, duration, work) in rows {
            text += &format!("{method},{cpu},{start},{duration},{work}\n");
        }
        let first = formats::parse(Path::new("in"), text.as_bytes()).unwrap();
        let second = again(&first, Format::Csv);
        prop_assert_eq!((second.manifest.method, second.quanta), (first.manifest.method, first.quanta));
    }
}

#[test]
fn large_files_take_time_in_proportion() {
    let row = |i: u64| {
        format!(
            " x-1 [000] d.h. {}.{:06}: local_timer_{}: vector=236\n",
            i / 1_000_000,
            i % 1_000_000,
            if i.is_multiple_of(2) { "entry" } else { "exit" }
        )
    };
    let text: String = (0..400_000).map(row).collect();
    let found = formats::parse(Path::new("in"), text.as_bytes()).unwrap();
    assert_eq!(found.intervals[0].intervals.len(), 200_000);
    // More begins than ends.
    let text: String = (0..200_000).map(|i: u64| row(2 * i)).chain([row(400_001)]).collect();
    assert_eq!(formats::parse(Path::new("in"), text.as_bytes()).unwrap().intervals[0].intervals.len(), 1);
}
