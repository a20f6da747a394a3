//! Samples of other tools' files: read, and compared with their content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quell_recording::formats::{self, Format};
use quell_recording::warning::MicrosecondTimes;
use quell_recording::{Bucket, Cpu, HistogramKind, Method, Nanos, Recording, Source, Warning};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name)
}

fn read(name: &str) -> Recording {
    formats::import(&sample(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(name: &str, text: &str) -> String {
    formats::parse(Path::new(name), text.as_bytes()).unwrap_err().to_string()
}

fn counts(recording: &Recording, cpu: u32) -> (u64, u64, u64) {
    let of_cpu = recording.histograms.iter().find(|histogram| histogram.cpu == Cpu(cpu)).unwrap();
    let times = |edge: fn(&Bucket) -> Nanos| of_cpu.buckets.iter().map(move |b| edge(b).as_nanos());
    let samples = of_cpu.buckets.iter().map(|bucket| bucket.count).sum();
    (samples, times(|b| b.from).min().unwrap(), times(|b| b.to).max().unwrap())
}

#[test]
fn histograms_count_what_the_tools_counted() {
    let oslat = read("oslat.json");
    assert_eq!((oslat.manifest.method, oslat.manifest.host.as_deref()), (Method::Histogram, Some("vm")));
    assert_eq!(oslat.manifest.cpus[0].end_ns, Nanos::from_nanos(9_995_000_000));
    let (samples, shortest, longest) = counts(&oslat, 1);
    assert!(samples > 424_097_267 && (shortest, longest) == (0, 9_819_999));

    let two = read("oslat_two_cores.txt");
    assert_eq!(
        counts(&two, 0),
        (21_796_389 + 4_924 + 1_442 + 142 + 33 + 33 + 41 + 83 + 65 + 34 + 17 + 317, 0, 136_749_999)
    );
    assert_eq!(counts(&two, 1).2, 168_034_999);
    assert_eq!(two.histograms[0].buckets[1].kind, HistogramKind::Gap);
    assert!(counts(&read("oslat_zero_omit.txt"), 1).0 > 62_862_201);
    // Later versions label the same buckets otherwise; nearly all times of the loop are below 1 us in each.
    for (file, of_1_us, longest) in [
        ("oslat_2.6.txt", 12_150_819, 8_051_999),
        ("oslat_2.6.json", 12_150_819, 8_051_999),
        ("oslat_2.10.txt", 12_013_004, 7_264_999),
    ] {
        let found = read(file);
        let first = &found.histograms[0].buckets[0];
        assert_eq!((first.from.as_nanos(), first.to.as_nanos(), first.count), (0, 999, of_1_us), "{file}");
        assert_eq!(counts(&found, 0).2, longest, "{file}");
    }
    for (file, of_250_ns, longest) in
        [("oslat_2.10_width.json", 11_873_324, 9_379_529), ("oslat_2.10_width.txt", 11_873_324, 9_379_529)]
    {
        let found = read(file);
        let first = &found.histograms[0].buckets[0];
        assert_eq!((first.from.as_nanos(), first.to.as_nanos(), first.count), (0, 249, of_250_ns), "{file}");
        assert_eq!(counts(&found, 0).2, longest, "{file}");
    }

    let json = read("cyclictest.json");
    assert_eq!(counts(&json, 1).2, 16_829_999);
    assert_eq!(json.histograms[0].series().count(), 2);
    assert_eq!(counts(&read("cyclictest_one_thread.json"), 1).2, 834_999);
    let text = read("cyclictest_h.txt");
    let (samples, shortest, longest) = counts(&text, 0);
    assert_eq!((samples, shortest, longest), (4 + 980, 34_000, 7_102_999));
    assert!(text.manifest.warnings.contains(&Warning::CpusOfThreadsUnknown));
    let histfile = read("cyclictest_histfile.txt");
    assert_eq!(
        (counts(&histfile, 0), counts(&histfile, 1)),
        ((976, 31_000, 12_398_999), (944, 40_000, 9_861_999))
    );
    assert_eq!(read("cyclictest_v.txt").histograms.len(), 2);
}

#[test]
fn rtlas_tables_are_read_by_column() {
    let osnoise = read("rtla_osnoise_hist.txt");
    assert_eq!(counts(&osnoise, 0), (1_204 + 310 + 22 + 1 + 3, 5_000, 1_811_999));
    assert_eq!(osnoise.manifest.cpus[0].end_ns, Nanos::from_secs(10));
    let timerlat = read("rtla_timerlat_hist.txt");
    let of_cpu = |kind| {
        timerlat.histograms[0].buckets.iter().filter(move |b| b.kind == kind).map(|b| b.count).sum::<u64>()
    };
    assert_eq!(of_cpu(HistogramKind::IrqLatency), 58_572 + 1_422 + 6 + 1);
    assert_eq!(of_cpu(HistogramKind::ThreadLatency), 57_021 + 2_931 + 40 + 2 + 7);
    let top = read("rtla_timerlat_top.txt");
    assert_eq!(counts(&top, 0), (2 * 9_999, 0, 61_999));
    // The last screen has the sums.
    let noise = read("rtla_osnoise_top.txt");
    assert_eq!((counts(&noise, 0), counts(&noise, 1).2), ((10, 0, 412_999), 1_204_999));
    assert!(
        noise.manifest.warnings[1].to_string().contains("2041 us of 10000000 us were noise in 10 periods"),
        "{:?}",
        noise.manifest.warnings
    );
}

#[test]
fn an_hdrhistogram_log_is_what_its_own_library_reads() {
    use base64::Engine as _;
    let recording = read("hdrhistogram.hlog");
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for line in fs_err::read_to_string(sample("hdrhistogram.hlog")).unwrap().lines() {
        let Some(coded) = line.split(',').nth(3).filter(|coded| coded.starts_with("HIST")) else { continue };
        let bytes = base64::engine::general_purpose::STANDARD.decode(coded).unwrap();
        let mut reader = hdrhistogram::serialization::Deserializer::new();
        let one: hdrhistogram::Histogram<u64> = reader.deserialize(&mut bytes.as_slice()).unwrap();
        for value in one.iter_recorded() {
            *expected.entry(value.value_iterated_to()).or_default() += value.count_at_value();
        }
    }
    let found = recording.histograms[0]
        .buckets
        .iter()
        .map(|b| (b.to.as_nanos(), b.count))
        .collect::<BTreeMap<_, _>>();
    assert_eq!((found.len(), found), (expected.len(), expected));
    assert_eq!(recording.manifest.cpus[0].end_ns, Nanos::from_secs(4));
}

/// The count of each source, and its net time in us.
fn sources(recording: &Recording) -> BTreeMap<String, (usize, u64)> {
    let mut all: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for one in recording.intervals.iter().flat_map(|side| &side.intervals) {
        let sum = all.entry(one.source.to_string()).or_default();
        *sum = (sum.0 + 1, sum.1 + one.net.as_nanos() / 1_000);
        assert!(one.net <= one.duration);
    }
    all
}

#[test]
fn the_kernels_text_becomes_intervals() {
    let timer = read("ftrace_text.txt");
    assert_eq!((timer.manifest.method, timer.intervals.len()), (Method::Kernel, 1));
    assert!(sources(&timer)["tick"].0 > 15, "{:?}", sources(&timer));
    assert!(timer.manifest.warnings.contains(&Warning::WholeMicroseconds { of: MicrosecondTimes::Events }));
    assert!(
        timer
            .manifest
            .sources
            .as_ref()
            .unwrap()
            .missing
            .iter()
            .any(|missing| missing.contains("sched_switch"))
    );
    let all = sources(&read("ftrace_all_events.txt"));
    for name in ["tick", "softirq:SCHED", "softirq:RCU", "ipi:reschedule"] {
        assert!(all.contains_key(name), "{name}: {all:?}");
    }
    assert!(
        all.keys().any(|name| name.starts_with("irq:virtio"))
            && all.keys().any(|name| name.starts_with("task:"))
    );
    assert!(!all.keys().any(|name| name.contains("swapper")), "{all:?}");
    let perf = sources(&read("perf_script.txt"));
    let exact = sources(&read("perf_script_ns.txt"));
    assert_eq!(perf.keys().collect::<Vec<_>>(), exact.keys().collect::<Vec<_>>());
    assert!(perf["tick"].0 > 10 && perf.contains_key("task:rcu_preempt"));
    assert!(sources(&read("perf_sched_script.txt")).contains_key("task:kworker/1:1"));
}

#[test]
fn a_trace_dat_is_the_same_in_both_versions_packed_or_not() {
    let [plain, six, packed] = ["trace_v7.dat", "trace_v6.dat", "trace_v7_zstd.dat"].map(read);
    assert_eq!(plain.intervals, six.intervals);
    assert_eq!(plain.intervals, packed.intervals);
    let all = sources(&plain);
    assert!(all["tick"].0 > 80 && all.contains_key("ipi:call_function_single"), "{all:?}");
    // trace-cmd's own text has whole us.
    let text = sources(&read("trace_cmd_report.txt"));
    assert!(text.contains_key("task:quell-probe") && all["task:quell-probe"].0 >= text["task:quell-probe"].0);
}

#[test]
fn the_osnoise_tracer_gives_detours_with_their_sources() {
    let events = read("osnoise_trace_events.txt");
    assert_eq!(events.manifest.method, Method::Detour);
    let durations: Vec<u64> =
        events.traces[0].detours.iter().map(|detour| detour.duration.as_nanos()).collect();
    assert_eq!((events.traces[0].cpu, durations), (Cpu(8), vec![2_411, 8_812]));
    let intervals = &events.intervals[0].intervals;
    let of = |source: &Source| {
        intervals.iter().filter(|one| one.source == *source).map(|one| one.net.as_nanos()).collect::<Vec<_>>()
    };
    assert_eq!(of(&Source::Tick), [1_845, 2_848]);
    assert_eq!(of(&Source::Task("migration/8".into())), [3_068]);
    assert_eq!((of(&Source::Nmi), of(&Source::Softirq("SCHED".into()))), (vec![1_500], vec![790]));

    let periods = read("osnoise_trace.txt");
    let quanta = &periods.quanta[0].quanta;
    assert_eq!((periods.manifest.method, quanta.len()), (Method::Ftq, 2));
    assert_eq!((quanta[1].duration, quanta[1].work), (Nanos::from_secs(1), 999_796_000));

    let late = read("timerlat_trace.txt");
    assert_eq!(late.manifest.method, Method::Histogram);
    assert_eq!(counts(&late, 1), (2, 2_833, 9_820));
}

#[test]
fn lists_of_detours_are_read() {
    let sysjitter = read("sysjitter_raw.1.txt");
    let trace = &sysjitter.traces[0];
    assert_eq!((trace.cpu, sysjitter.manifest.threshold_ns), (Cpu(1), Some(150.0)));
    assert_eq!(
        (trace.detours[0].start.as_nanos(), trace.detours[0].duration.as_nanos()),
        (297_163, 4_039_510)
    );
    assert!(sysjitter.manifest.warnings[0].to_string().contains("8542 interruptions"));
    let list = read("detour_proto.txt");
    assert_eq!(list.manifest.zero_monotonic_ns, Some(2_555_935_097_281));
    assert_eq!(list.traces[0].detours[0].start.as_nanos(), 2_556_154_965_703 - 2_555_935_097_281);
    assert_eq!(list.traces[0].span.end.as_nanos(), 2_560_152_551_919 - 2_555_935_097_281);
    let events = read("bpf_events_proto.txt");
    assert!(sources(&events)["tick"].0 > 20 && events.manifest.zero_monotonic_ns.is_some());
}

#[test]
fn what_cannot_be_read_says_why_and_where() {
    let numbers = "# tracer: nop\n x-1 [000] d.h. 1.000002: local_timer_entry: vector=236\n";
    for (text, why) in [
        (String::new(), "the file is empty"),
        ("PERFILE2".into(), "`perf script --ns -i FILE"),
        ("7\n8\n".into(), "one number a line"),
        ("# size n PRTT(1,0,s) PRTT(n,0,s)\n".into(), "convert it to a network"),
        (
            numbers.to_owned() + " x-1 [000] d.h. 1.000001: local_timer_exit: vector=236\n",
            "line 3: the time goes back by 1000 ns",
        ),
        (numbers.to_owned() + " x-1 [000] d.h. 1.00", "line 3: `x-1 [000] d.h. 1.00` is not"),
        (
            numbers.to_owned() + " x-1 [000] d.h. 1.000003: local_timer_exit: vec",
            "line 3: `local_timer_exit: vec` is not",
        ),
        (numbers.to_owned(), "says nothing of noise"),
        ("# tracer: nop\n x-1 [000] d.h. 99999999999999999999.1: a: b\n".into(), "line 2"),
        (
            "# tracer: nop\n x-1 [000] d.h. 12345: local_timer_entry: vector=236\n".into(),
            "choose another clock",
        ),
        ("# tracer: function_graph\n".into(), "tracer function_graph"),
        ("{\"thread\":{\"0\":{\"histogram\":{\"x\":1}}}}".into(), "thread 0: `x` is no bucket"),
        ("{\"thread\":{\"0\":{\"cpu\":1}}}".into(), "no histogram"),
        ("{\"thread\":{\"0\":{\"histogram\":{\"1\":-1}}}}".into(), "rt-tests"),
        ("{\"thread\":{\"0\":{\"histogram\":{\"18446744073709551615\":1}}}}".into(), "beyond all time"),
        (
            "oslat V 2\n Core:\t 1\n 001 (us):\t 5 6\n".into(),
            "line 3: it has 2 numbers, and oslat watched 1 cores",
        ),
        ("oslat V 2\n Core:\t 1\n".into(), "holds no histogram"),
        ("# Histogram\n000001 000002\n000001 000002\n".into(), "line 3: the latency 1 does not rise"),
        ("# Histogram\n000001 00x\n".into(), "line 2: `00x` is not a whole number"),
        ("# RTLA osnoise histogram\nIndex CPU-000\n1 2 3\n".into(), "line 3: it has 2 numbers for 1 columns"),
        ("# [Histogram log format version 1.3]\n1,2,3\n".into(), "line 2: `1,2,3` is not"),
        ("# [Histogram log format version 1.3]\n1,nan,3,HISTFAAA\n".into(), "line 2: `nan` is not a time"),
        ("# [Histogram log format version 1.3]\n1,2,3,HISTEAAA\n".into(), "line 2: its histogram"),
        ("# cpu_mhz: 1\n5 1 1 9\n".into(), "line 2: it lasts longer"),
        ("# tsc_anchor 1 mono 9 tsc2 1\n5 1\n".into(), "line 2: it is before the first anchor"),
        ("cpu,thread,kind,from_ns,to_ns,count\n0,0,gap,2,1,1\n".into(), "line 2: no bucket ends before"),
        ("cpu,thread,kind,from_ns,to_ns,count\n0,0,odd,1,2,1\n".into(), "line 2: `odd` is not a kind"),
        ("method,cpu,start_ns,duration_ns,work\nfwq,0,1\n".into(), "line 2: column 4 is missing"),
    ] {
        let error = refused("in", &text);
        assert!(error.contains(why), "{text:?}: {error}");
    }
    for (name, why) in
        [("ibm_osnoise.txt", "holds no row of its histograms"), ("netgauge_loggp.out", "net.toml")]
    {
        let error = formats::import(&sample(name)).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    let json = fs_err::read_to_string(sample("cyclictest.json")).unwrap();
    assert!(refused("in", &json[..json.len() / 2]).contains("no whole document"));
    let whole = fs_err::read(sample("trace_v7_zstd.dat")).unwrap();
    for cut in [12, 40, 200, whole.len() - 3_000] {
        let error = formats::parse(Path::new("in"), &whole[..cut]).unwrap_err().to_string();
        assert!(error.contains("cut off") || error.contains("damaged"), "{cut}: {error}");
    }
}

#[test]
fn a_time_line_for_chrome_is_json() {
    for name in ["osnoise_trace_events.txt", "osnoise_trace.txt", "trace_v7.dat"] {
        let recording = read(name);
        let mut out = Vec::new();
        formats::export(&recording, Format::Chrome, &mut out).unwrap();
        let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let slices =
            parsed["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").count();
        let intervals: usize = recording.intervals.iter().map(|side| side.intervals.len()).sum();
        let detours: usize = recording.traces.iter().map(|trace| trace.detours.len()).sum();
        let quanta: usize = recording.quanta.iter().map(|series| series.quanta.len()).sum();
        assert_eq!(slices, intervals + detours + quanta);
    }
}
