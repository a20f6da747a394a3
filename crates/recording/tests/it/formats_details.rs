//! Small files of each format, made by hand: the figures are those of the format's description.

use std::path::Path;

use base64::Engine as _;
use quell_recording::formats::{self, Format, Imported};
use quell_recording::{HistogramKind, Method, Nanos, Recording, Source, Warning};

fn all_of(text: &str) -> Result<Imported, String> {
    formats::parse_all(Path::new("in"), text.as_bytes()).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Recording, String> {
    all_of(text).map(|found| found.recording)
}

/// From, to and count of each bucket.
fn buckets(recording: &Recording) -> Vec<(u64, u64, u64)> {
    let all = recording.histograms.iter().flat_map(|histogram| &histogram.buckets);
    all.map(|b| (b.from.as_nanos(), b.to.as_nanos(), b.count)).collect()
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let error = parse(text).unwrap_err();
    assert!(error.contains(why), "{text:?}: {error}");
}

#[test]
fn cyclictests_rows_stand_between_its_remarks() {
    let text = "# Histogram\nT: 0 remark\nremark\n\n000001 000002 000000\n\nT: 0 (1)\n000003 000000 000004\n# Max Latencies: 00001 00003\n# Histogram Overflows: 00000 00000\n";
    let found = parse(text).unwrap();
    assert_eq!(buckets(&found), [(1_000, 1_999, 2), (3_000, 3_999, 4)]);
    refused("# Histogram\n000001 000002\nremark\n", "line 3: `remark` is no row");
    for row in ["5", "5 1"] {
        refused(&format!("# Histogram\n000001 2 3\n{row}\n"), "line 3: it has");
    }
    refused("# Histogram\n000001 2 3\n5 1 1 1\n", "line 3: it has 4 numbers");
    refused("# Histogram\n5\n", "line 2: it has 1 numbers");
}

#[test]
fn verbose_cyclictest_has_a_line_for_each_time_a_thread_woke() {
    let text = "       0:       0:      15\n       1:       0:      17\n\n# remark\n       0:       1:      15\nT: 0 end\n";
    let found = parse(text).unwrap();
    assert_eq!(buckets(&found), [(15_000, 15_999, 2), (17_000, 17_999, 1)]);
    assert!(parse("Max CPUs = 4\nsome remark\n0: 0: 15\n").is_ok());
    refused("Max CPUs = 4\nsome: remark\n0: 0: 15\n", "line 2: `some: remark` is not");
    refused("Max CPUs = 4\n0: 0: 15\nsome remark\n", "line 3: `some remark` is not");
}

#[test]
fn cyclictests_json_counts_what_the_histogram_has_no_room_for() {
    let file = |resolution: u8, more: &str| {
        format!(
            "{{\"cmdline\":\"cyclictest -h 9\",\"resolution_in_ns\":{resolution},\"thread\":{{\
             \"0\":{{\"histogram\":{{\"1\":3,\"2\":4}},\"cycles\":10,\"max\":25{more}}},\
             \"1\":{{\"histogram\":{{\"1\":1}},\"cycles\":1,\"max\":1{more}}}}}}}"
        )
    };
    let found = parse(&file(1, "")).unwrap();
    // Two of the three above the last bucket are not known, and one is the longest.
    let expected = [(1, 1, 3), (2, 2, 4), (3, 25, 2), (25, 25, 1), (1, 1, 1)];
    assert_eq!(buckets(&found), expected);
    assert!(found.histograms[0].buckets.iter().all(|bucket| bucket.kind == HistogramKind::Latency));
    let unknown = |found: &Recording| {
        found.manifest.warnings.iter().filter(|&w| *w == Warning::CpusOfThreadsUnknown).count()
    };
    assert_eq!(unknown(&found), 1, "one warning for all threads");
    let known = parse(&file(0, ",\"cpu\":3")).unwrap();
    assert_eq!((unknown(&known), buckets(&known)[0]), (0, (1_000, 1_999, 1 + 3 - 1)));
    // oslat is known by its name, or by a field that only it has.
    for text in [
        "{\"cmdline\":\"./oslat -D 1\",\"thread\":{\"0\":{\"histogram\":{\"1\":3}}}}",
        "{\"cmdline\":\"other\",\"thread\":{\"0\":{\"duration\":1.5,\"histogram\":{\"1\":3}}}}",
    ] {
        assert_eq!(parse(text).unwrap().histograms[0].buckets[0].kind, HistogramKind::Gap, "{text}");
    }
}

#[test]
fn a_file_has_one_run() {
    refused("oslat V 2\n Core:\t 1\n Core:\t 1\n", "line 3: a second run begins");
    refused(
        "# RTLA osnoise histogram\nIndex CPU-000\n1 2\nIndex CPU-000\n",
        "line 4: a second histogram begins",
    );
}

#[test]
fn rtlas_rows_are_as_wide_as_their_indices_allow() {
    let text = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration: 1 02:03:04\n\nIndex CPU-000\n\n0 4\n10 1\nover: 0\nmax: 12\n";
    let found = parse(text).unwrap();
    // Rows of 10 us; the longest time was one of 12 us.
    assert_eq!(buckets(&found), [(0, 9_999, 4), (10_000, 12_999, 1)]);
    assert_eq!(found.manifest.cpus[0].end_ns, Nanos::from_secs(((24 + 2) * 60 + 3) * 60 + 4));
    // One 0 for all columns if nothing was seen; otherwise each column has a number.
    let none = "# RTLA osnoise histogram\nIndex CPU-000 CPU-001\nover: 0\n";
    assert!(parse(none).is_ok());
    refused("# RTLA osnoise histogram\nIndex CPU-000 CPU-001\nover: 1\n", "line 3: it has 1 numbers");
    refused("# RTLA osnoise histogram\nIndex CPU-000 CPU-001\n1 2 3\nover: 0\n", "line 4: it has 1 numbers");
}

#[test]
fn rtlas_summary_bounds_the_latencies() {
    let text = "Timer Latency\n 0 00:00:10 | IRQ Timer Latency (us) | Thread Timer Latency (us)\nCPU COUNT | cur min avg max | cur min avg max\n 0 #9 | 4 3 5 61 | 4 - - -\n";
    let found = parse(text).unwrap();
    // One is the longest; the others are between the shortest and that.
    assert_eq!(buckets(&found), [(3_000, 61_999, 8), (61_000, 61_999, 1)]);
}

/// A histogram in HdrHistogram's encoding V2: 3 is counted twice, and 32 or 33 once.
fn encoded(offset: u32, digits: u32, low: u64, ratio: f64) -> String {
    // One digit has 32 counts of width 1, then 16 of width 2. ZigZag: -1 is 1, 1 is 2, -2 is 3; a negative number skips counts.
    let counts = [5, 4, 55, 2];
    let mut bytes = Vec::new();
    for word in [0x1c84_9313, counts.len() as u32, offset, digits] {
        bytes.extend(word.to_be_bytes());
    }
    for long in [low, 1_000, ratio.to_bits()] {
        bytes.extend(long.to_be_bytes());
    }
    bytes.extend(counts);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn an_hdr_histogram_is_decoded_by_its_description() {
    let head = "# [Histogram log format version 1.3]\n";
    let row = |coded: &str| format!("0.5,1,0.1,{coded}\n");
    let good = row(&encoded(0, 1, 1, 1.0));
    for text in [good.clone(), format!("{head}{good}")] {
        let found = parse(&text).unwrap();
        assert_eq!(buckets(&found), [(3, 3, 2), (32, 33, 1)]);
        assert_eq!(found.manifest.cpus[0].end_ns, Nanos::from_secs(1));
    }
    for bad in [encoded(1, 1, 1, 1.0), encoded(0, 6, 1, 1.0), encoded(0, 1, 0, 1.0), encoded(0, 1, 1, 2.0)] {
        refused(&format!("{head}{}", row(&bad)), "shifted, scaled, or of more than 5 digits");
    }
    assert!(parse(&format!("{head}{}", row(&encoded(0, 5, 1, 1.0)))).is_ok());
    for time in ["-1", "inf", "nan"] {
        refused(&format!("{head}{time},2,3,HISTFAAA\n"), "is not a time in seconds");
    }
    let tagged = |tags: usize| {
        let rows: String = (0..tags).map(|tag| format!("Tag=t{tag},{good}")).collect();
        parse(&format!("{head}{rows}"))
    };
    assert!(tagged(4_096).is_ok());
    assert!(tagged(4_097).unwrap_err().contains("more than 4096 tags"));
}

#[test]
fn an_hdr_log_holds_times_of_up_to_292_years() {
    let written = |ns: u64| {
        let recording = parse(&format!("cpu,start_ns,duration_ns\n0,0,{ns}\n")).unwrap();
        formats::export(&recording, Format::HdrHistogram, &mut Vec::new()).map_err(|error| error.to_string())
    };
    assert_eq!(written(i64::MAX as u64), Ok(()));
    for beyond in [1 << 63, u64::MAX] {
        assert!(written(beyond).unwrap_err().contains("more than 292 years"));
    }
}

#[test]
fn a_row_alone_tells_its_format() {
    let vpsum = all_of("0 10 3\n").unwrap().phases;
    let psnap = all_of("# P-SNAP v1.2\n0 10 3\n").unwrap().phases;
    assert_eq!((vpsum.len(), psnap.len()), (1, 3), "an iteration, and three quanta");
    refused("start_ns duration_ns\n1 2\n", "`start_ns` is not a time");
    assert!(parse("start_ns,duration_ns\n1,2\n").is_ok());
    let log =
        fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/hdrhistogram.hlog"))
            .unwrap();
    let row = log.lines().find(|line| line.split(',').nth(3).is_some_and(|field| field.starts_with("HIST")));
    assert_eq!(parse(row.unwrap()).unwrap().manifest.method, Method::Histogram);
    refused("1.5,x,2,HISTF\n", "the format is not known");
    refused("1: 2: 3: 4\n", "the format is not known");
    // A list of tracepoints has long times and kinds of two digits.
    assert!(parse("1000000 10 236 0 -\n1000050 11 236 0 -\n").is_ok());
    for other in ["100000 10 236 0 -\n", "1000000 100 236 0 -\n"] {
        refused(other, "the format is not known");
    }
}

#[test]
fn a_vector_of_x86_names_its_interrupt() {
    for (vector, name) in [
        (236, "tick"),
        (246, "ipi:irq_work"),
        (251, "ipi:call_function_single"),
        (252, "ipi:call_function"),
        (253, "ipi:reschedule"),
        (250, "irq:vector 250"),
    ] {
        let found = parse(&format!("1000000 10 {vector} 0 -\n1000050 11 {vector} 0 -\n")).unwrap();
        let interval = &found.intervals[0].intervals[0];
        assert_eq!((interval.source.to_string().as_str(), interval.duration.as_nanos()), (name, 50));
    }
}

#[test]
fn the_timer_of_some_machines_is_a_device() {
    for (device, source) in
        [("arch_timer", Source::Tick), ("riscv-timer", Source::Tick), ("eth0", Source::Irq("eth0".into()))]
    {
        let row = |time: u32, what: &str| format!(" x-1 [000] d.h. 1.{time:06}: irq_handler_{what}\n");
        let rows = row(2, &format!("entry: irq=11 name={device}")) + &row(4, "exit: irq=11 ret=handled");
        let found = parse(&format!("# tracer: nop\n{rows}")).unwrap();
        assert_eq!(found.intervals[0].intervals[0].source, source);
    }
}

#[test]
fn only_a_trace_of_whole_microseconds_is_called_one() {
    let coarse = |seconds: [&str; 2]| {
        let [from, to] = seconds;
        let text = format!(
            " x 1 [000] {from}: irq_vectors:local_timer_entry: vector=236\n x 1 [000] {to}: irq_vectors:local_timer_exit: vector=236\n"
        );
        let found = parse(&text).unwrap();
        found.manifest.warnings.iter().any(|warning| matches!(warning, Warning::WholeMicroseconds { .. }))
    };
    assert!(coarse(["1.000002", "1.000004"]));
    assert!(!coarse(["1.000002001", "1.000004003"]));
}

#[test]
fn a_list_of_detours_may_have_empty_lines() {
    let found = parse("# tsc_anchor 1 mono 100 tsc2 1 mono2 900\n\n150 10\n\n300 20\n").unwrap();
    let detours = &found.traces[0].detours;
    let times: Vec<_> = detours.iter().map(|d| (d.start.as_nanos(), d.duration.as_nanos())).collect();
    assert_eq!((times, found.traces[0].span.end.as_nanos()), (vec![(50, 10), (200, 20)], 800));
}

#[test]
fn netgauges_comments_are_understood() {
    let head = "# Benchmark Method: selfish\n# Measurement period: 2.5 s\n";
    let found = |minimum: &str| {
        let text = format!(
            "{head}# Minimal cycle length [ns]: {minimum}\n# Threshold: [% minimal cycle length]: 900\n10 5\n"
        );
        parse(&text).unwrap()
    };
    let one = found("20");
    assert_eq!(one.traces[0].span.end.as_nanos(), 2_500_000_000);
    assert_eq!(one.manifest.threshold_ns, Some(180.0));
    for none in ["-1", "inf", "nan"] {
        assert_eq!(found(none).manifest.threshold_ns, None, "{none}");
    }
    refused("# Benchmark Method: other\n10 5\n", "it holds netgauge's `other` rows");
    refused("# hello\n", "it has only comments");
}

#[test]
fn only_durations_of_quanta_are_in_whole_microseconds() {
    let coarse = |text: &str| {
        let warnings = parse(text).unwrap().manifest.warnings;
        warnings.iter().any(|warning| matches!(warning, Warning::WholeMicroseconds { .. }))
    };
    assert!(coarse("# Benchmark Method: fwq\n0 10\n"));
    assert!(!coarse("# Benchmark Method: ftq\n# Compute-Cycle Duration: 500 usec\n0 10\n"));
}

#[test]
fn quanta_need_a_clock_and_an_order() {
    refused("Speed: thread 0, GHz 0\n5\n", "line 1: `Speed: thread 0, GHz 0` does not end with");
    let llnl = parse("Speed: thread 0, GHz 2\n500\n").unwrap();
    assert_eq!(llnl.quanta[0].quanta[0].duration.as_nanos(), 250);
    refused("# Frequency 10\n5 1\n5 1\n", "line 3: it begins before");
    assert_eq!(parse("# Frequency 10\n5 1\n6 1\n").unwrap().quanta[0].quanta[1].start.as_nanos(), 1);
}

#[test]
fn vpsums_comments_are_the_facts_of_the_run() {
    let text =
        "# quell vpsum 1\n# rank: 3 of 8\n# bench: bsp\n# operation: allreduce\n# quantum, ns: 700\n0 5 9\n";
    let manifest = parse(text).unwrap().manifest;
    let mpi = manifest.mpi.unwrap();
    assert_eq!((mpi.bench.as_str(), mpi.operation.as_str(), mpi.ranks), ("bsp", "allreduce", 8));
    assert_eq!((mpi.here[0].rank, manifest.quantum_ns), (3, Some(Nanos::from_nanos(700))));
}

#[test]
fn sysjitter_ran_as_long_as_it_says() {
    let text = "# cpu_mhz: 1000\n# total_runtime: 2.5 seconds\n100 1 1 30\n";
    let found = parse(text).unwrap();
    assert_eq!(found.traces[0].span.end.as_nanos(), 2_500_000_000);
    assert_eq!(found.traces[0].detours[0].start.as_nanos(), 70);
}

#[test]
fn a_field_with_a_space_at_its_edge_is_quoted() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/osnoise_trace_events.txt");
    let mut recording = formats::import(&source).unwrap();
    recording.manifest.method = Method::Kernel;
    let one = &mut recording.intervals[0].intervals;
    one.truncate(1);
    for (name, written) in
        [("a", "task:a,"), ("a ", "\"task:a \","), ("a,b", "\"task:a,b\","), ("a\"b", "\"task:a\"\"b\",")]
    {
        recording.intervals[0].intervals[0].source = Source::Task(name.into());
        let mut out = Vec::new();
        formats::export(&recording, Format::Csv, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().nth(1).unwrap().contains(written), "{text}");
    }
}

/// Of `-H`, whose last column is the sum; the sum has a longest latency, and no least one.
#[test]
fn cyclictests_sum_of_all_threads_is_no_thread() {
    let text = "# Histogram\n000005 000010\t000020\t000030\n000006 000000\t000001\t000001\n# Min Latencies: 00005 00005\n\
                # Max Latencies: 00009 00011 00011\n# Histogram Overflows: 00001 00002 00003\n";
    let found = parse(text).unwrap();
    assert_eq!(found.histograms.len(), 2);
    let counts: Vec<u64> =
        found.histograms.iter().map(|one| one.buckets.iter().map(|bucket| bucket.count).sum()).collect();
    assert_eq!(counts, [11, 23]);
}

#[test]
fn what_rtla_says_after_its_summary_is_no_row() {
    let head =
        "# RTLA osnoise histogram\nIndex   CPU-000\n1             8\nover:         0\nmax:         15\n";
    let found =
        parse(&format!("{head}rtla osnoise hit stop tracing\n## CPU 0 hit stop tracing, analyzing it ##\n"))
            .unwrap();
    assert_eq!(buckets(&found), buckets(&parse(head).unwrap()));
    refused("# RTLA osnoise histogram\nIndex CPU-000\nrtla osnoise\n", "`rtla osnoise` is no row");
}

#[test]
fn nothing_spans_events_that_were_lost() {
    let of = |lost: &str| {
        format!(
            "# tracer: nop\n a-1 [001] d.h1. 10.000000: local_timer_entry: vector=236\n{lost}\n \
             b-2 [001] d.h1. 12.000000: local_timer_exit: vector=236\n \
             b-2 [001] d.h1. 13.000000: local_timer_entry: vector=236\n \
             b-2 [001] d.h1. 13.000005: local_timer_exit: vector=236\n"
        )
    };
    for (lost, count) in
        [("CPU:1 [LOST 5000 EVENTS]", 5000), ("CPU:1 [40 EVENTS DROPPED]", 40), ("CPU:1 [EVENTS DROPPED]", 1)]
    {
        let found = parse(&of(lost)).unwrap();
        let warned = format!("{:?}", found.manifest.warnings);
        let lengths: Vec<u64> = found
            .intervals
            .iter()
            .flat_map(|side| &side.intervals)
            .map(|one| one.duration.as_nanos())
            .collect();
        assert_eq!(lengths, [5_000], "{lost}");
        assert!(warned.contains(&count.to_string()), "{lost}: {warned}");
    }
    // On another CPU.
    assert_eq!(parse(&of("CPU:0 [LOST 1 EVENTS]")).unwrap().intervals[0].intervals.len(), 2);
}

#[test]
fn a_table_of_detours_may_come_from_a_spreadsheet_or_r() {
    let plain = parse("cpu,start_ns,duration_ns,own\n0,10,5,true\n1,20,6,false\n").unwrap();
    for text in [
        "cpu,start_ns,duration_ns,own\r\n0,10,5,TRUE\r\n1,20,6,FALSE\r\n",
        "\"\",\"cpu\",\"start_ns\",\"duration_ns\",\"own\"\n\"1\",0,10,5,TRUE\n\"2\",1,20,6,FALSE\n",
        "# a remark\ncpu,start_ns,duration_ns,own\n0,10,5,True\n1,20,6,False\n",
        "cpu,note,start_ns,duration_ns,own\n0,\"a, b\",10,5,1\n1,c,20,6,0\n",
    ] {
        assert_eq!(parse(text).unwrap().traces, plain.traces, "{text:?}");
    }
    refused("# a remark\ncpu,start_ns,duration\n", "line 2: the column `duration_ns`");
}

#[test]
fn netgauges_rounded_period_does_not_replace_its_end() {
    let text = |period: &str| {
        format!("# Benchmark Method: selfish\n# Measurement period: {period} s\n100000\t5000000\n")
    };
    let end = |period: &str| parse(&text(period)).unwrap().traces[0].span.end.as_nanos();
    assert_eq!(end("0.01"), 5_100_000);
    assert_eq!(end("0.010000000"), 10_000_000);
}
