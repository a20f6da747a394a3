//! What each source costs at scale, and what to do about it, from synthetic recordings.

use std::path::Path;

use crate::support::{fake_machine, json, run, transcript};
use insta::assert_snapshot;
use quell_recording::{
    Cpu, CpuFacts, Detour, Interval, Manifest, Method, Nanos, Source, SourcesFacts, Span, State, Writer,
};
use serde_json::Value;

const SPAN_NS: u64 = 40_000_000_000;

/// A periodic source: when it first strikes on a CPU, and how long it takes each time.
struct SourceModel {
    source: &'static str,
    every_ns: u64,
    first_ns: u64,
    takes_ns: u64,
}

/// A has 90 % of the time in short ticks, B is rare and long, C adds a little.
const MODELS: [SourceModel; 3] = [
    SourceModel { source: "tick", every_ns: 1_000_000, first_ns: 300_000, takes_ns: 9_000 },
    SourceModel {
        source: "task:reaper",
        every_ns: 19_990_000_000,
        first_ns: 7_500_400_000,
        takes_ns: 10_000_000,
    },
    SourceModel { source: "irq:disk", every_ns: 20_001_000, first_ns: 600_000, takes_ns: 10_000 },
];

/// A recording of two CPUs; the second CPU's events lag behind the first's.
fn node(folder: &Path, name: &str, models: &[&SourceModel]) {
    let mut manifest = Manifest::new(Method::Detour, State::Complete);
    manifest.threshold_ns = Some(150.0);
    manifest.sources = Some(SourcesFacts::default());
    let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(SPAN_NS) };
    manifest.cpus = [0, 1].map(|cpu| CpuFacts::from_span(Cpu(cpu), span)).into();
    let mut writer = Writer::create(&folder.join(name), &manifest).unwrap();
    for cpu in [Cpu(0), Cpu(1)] {
        let mut intervals: Vec<Interval> = models.iter().flat_map(|model| intervals(model, cpu)).collect();
        intervals.sort_by_key(|one| one.start);
        // As the program sees it: intervals that nest or touch are one gap.
        let mut detours: Vec<Detour> = Vec::new();
        for one in &intervals {
            match detours.last_mut().filter(|last| last.end() >= one.start) {
                Some(last) => last.duration = last.duration.max(one.end() - last.start),
                None => detours.push(Detour { start: one.start, duration: one.duration, own: false }),
            }
        }
        writer.detours(&detours.into_iter().map(|one| (cpu, one)).collect::<Vec<_>>()).unwrap();
        writer.intervals(&intervals.into_iter().map(|one| (cpu, one)).collect::<Vec<_>>()).unwrap();
    }
    writer.finish(&mut manifest).unwrap();
}

fn intervals(model: &SourceModel, cpu: Cpu) -> impl Iterator<Item = Interval> {
    let (source, takes) = (model.source.parse::<Source>().unwrap(), model.takes_ns);
    let first = model.first_ns + u64::from(cpu.0) * model.every_ns / 3;
    (first..SPAN_NS - takes).step_by(model.every_ns as usize).map(move |start| {
        let (start, duration) = (Nanos::from_nanos(start), Nanos::from_nanos(takes));
        let source = source.clone();
        Interval { start, duration, net: duration, source, pid: 0, victim: 0, detail: None, cause: None }
    })
}

fn built(folder: &Path) {
    node(folder, "built.quell", &MODELS.iter().collect::<Vec<_>>());
}

fn cost<'a>(advice: &'a Value, source: &str, at: usize) -> &'a Value {
    let all = advice["sources"].as_array().unwrap();
    &all.iter().find(|one| one["source"] == source).unwrap()["costs"][at]
}

fn sum(advice: &Value, at: usize, field: &str) -> f64 {
    let all = advice["sources"].as_array().unwrap().iter();
    all.map(|one| one["costs"][at][field].as_f64().unwrap()).sum()
}

#[test]
fn a_recording_is_noise_by_either_name() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let [named, given] = [&["built.quell"][..], &["--noise", "built.quell"]].map(|noise| {
        let words = [&["predict"], noise, &["--ranks", "64", "--phases", "50", "--json"]].concat();
        json(dir.path(), &words)["points"].clone()
    });
    assert_eq!(named, given);
}

#[test]
fn the_order_depends_on_the_scale_and_removal_confirms_each_figure() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let mut resolved = 0;
    for (ranks, first) in [("16", "tick"), ("16384", "task:reaper")] {
        let advice = json(dir.path(), &["advise", "built.quell", "--ranks", ranks, "--json"]);
        assert_eq!(advice["sources"][0]["source"], first, "{advice:#}");
        let whole = advice["scales"][0]["slowdown_percent"].as_f64().unwrap();
        assert!((sum(&advice, 0, "part_percent") / whole - 1.0).abs() < 0.01, "{advice:#}");
        let overlap = advice["scales"][0]["overlap_percent"].as_f64().unwrap();
        assert!(((sum(&advice, 0, "gain_percent") + overlap) / whole - 1.0).abs() < 0.01, "{advice:#}");
        for source in ["tick", "task:reaper"] {
            let rest: Vec<&SourceModel> = MODELS.iter().filter(|model| model.source != source).collect();
            let name = format!("{ranks}-{}.quell", source.replace(':', "-"));
            node(dir.path(), &name, &rest);
            let really = json(dir.path(), &["predict", &name, "--ranks", ranks, "--seed", "5", "--json"]);
            let left = really["points"][0]["slowdown_percent"].as_f64().unwrap();
            let interval = cost(&advice, source, 0)["without_ci95_percent"].clone();
            if interval.is_null() {
                continue;
            }
            resolved += 1;
            let [low, high] = [0, 1].map(|at| interval[at].as_f64().unwrap());
            assert!(
                (low..=high).contains(&left),
                "without {source} at {ranks}: {left}, not {low} to {high}: {:#}",
                cost(&advice, source, 0)
            );
        }
    }
    assert!(resolved >= 2, "intervals that can be held against a prediction: {resolved}");
}

#[test]
fn a_page_has_one_slowdown_for_a_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    assert!(
        run(dir.path(), &["report", "built.quell", "-o", "page.html", "--ranks", "2,16,128"])
            .status
            .success()
    );
    let page = fs_err::read_to_string(dir.path().join("page.html")).unwrap();
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let points = data["predict"][0]["points"].as_array().unwrap();
    let slowdown = |rows: &[Value], ranks: &Value| {
        let row = rows.iter().find(|row| row["ranks"] == *ranks);
        row.map(|row| row["slowdown_percent"].clone())
    };
    let scales = data["advice"]["scales"].as_array().unwrap();
    let both: Vec<_> = points
        .iter()
        .filter_map(|point| Some((slowdown(points, &point["ranks"])?, slowdown(scales, &point["ranks"])?)))
        .collect();
    assert_eq!(both.len(), 3, "{both:?}");
    assert!(both.iter().all(|(prediction, advice)| prediction == advice), "{both:?}");
}

#[test]
fn what_ifs_predict_the_same_as_advice() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let advice = json(dir.path(), &["advise", "built.quell", "--ranks", "256", "--json"]);
    let predict = |what: &[&str]| {
        let common = ["predict", "built.quell", "--ranks", "256", "--json"];
        json(dir.path(), &[&common[..], what].concat())["points"][0]["slowdown_percent"].clone()
    };
    assert_eq!(predict(&["--without", "tick"]), cost(&advice, "tick", 0)["without_percent"]);
    assert_eq!(predict(&["--only", "task:^reaper$"]), cost(&advice, "task:reaper", 0)["alone_percent"]);
    assert_eq!(predict(&[]), advice["scales"][0]["slowdown_percent"]);
    let value = |what: &[&str]| predict(what).as_f64().unwrap();
    assert!(value(&["--coschedule", "task:reaper"]) < value(&[]));
    assert!(value(&["--scaled", "task:reaper=3"]) > value(&[]));
    assert!(value(&["--on-cpu", "irq:disk=0"]) > 0.0 && value(&["--leave", "1"]) > 0.0);
    let document = json(
        dir.path(),
        &["predict", "built.quell", "--ranks", "256", "--align", "tick", "--stagger", "irq:disk", "--json"],
    );
    assert_eq!(document["what_if"].as_array().unwrap().len(), 2, "{document:#}");
}

#[test]
fn what_is_asked_wrongly_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let reported = [
        &["predict", "built.quell", "--without", "tikc"][..],
        &["predict", "built.quell", "--without", "irk:x"],
        &["predict", "built.quell", "--leave", "2"],
        &["predict", "built.quell", "--on-cpu", "tick=7"],
        &["predict", "built.quell", "--scaled", "tick=NaN"],
        &["predict", "built.quell", "--op", "allreduce", "--ranks", "16", "--coschedule", "tick"],
        &["advise", "absent.quell"],
        &["advise", "built.quell", "--goal", "absent.goal"],
        &["advise", "built.quell", "--goal", "absent.goal", "--ranks", "4"],
        &["advise", "built.quell", "--phases", "0"],
    ]
    .map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(dir.path(), args)));
    assert_snapshot!(reported.concat());
}

#[test]
fn an_application_is_advised_on_by_its_schedule() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let made = run(
        dir.path(),
        &[
            "goal",
            "make",
            "--pattern",
            "bsp",
            "--ranks",
            "8",
            "--work",
            "1ms",
            "--iterations",
            "20",
            "-o",
            "app.goal",
        ],
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let advice = json(dir.path(), &["advise", "built.quell", "--goal", "app.goal", "--json"]);
    assert_eq!(advice["scales"][0]["ranks"], 8);
    let whole = advice["scales"][0]["slowdown_percent"].as_f64().unwrap();
    assert!((sum(&advice, 0, "part_percent") / whole - 1.0).abs() < 0.01, "{advice:#}");
    assert!(advice["leave"].is_null() && advice["job"]["quantum_ns"].is_null());
}

#[test]
fn models_are_advised_on_by_component() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[component]]\nname = \"heartbeat\"\nperiodic = { period = \"10ms\" }\nduration = { constant = \"50us\" }\n";
    fs_err::write(dir.path().join("model.toml"), text).unwrap();
    let advice = json(dir.path(), &["advise", "--noise", "model.toml", "--ranks", "64", "--json"]);
    assert_eq!(advice["sources"][0]["source"], "heartbeat");
    assert_eq!(advice["worth_it"], false);
}

#[test]
fn combinations_are_swept_into_rows_of_sources() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path());
    let plan = "noise = [\"built.quell\"]\nranks = [16, 256]\nquantum = [\"1ms\", \"2ms\"]\nphases = 100\n";
    fs_err::write(dir.path().join("plan.toml"), plan).unwrap();
    let document = json(dir.path(), &["advise", "--sweep", "plan.toml", "--threads", "1", "--json"]);
    assert_eq!((&document["points"], &document["verb"]), (&4.into(), &"advise".into()), "{document:#}");
    let again = json(dir.path(), &["advise", "--sweep", "plan.toml", "--json"]);
    assert_eq!(again["computed"], 0, "all was there: {again:#}");
    assert!(dir.path().join("plan.sweep/part-000000.parquet").exists());
}

/// Numbers of CPUs to leave, what the ranks of a GPU node leave anyway, and the binding of the best choice.
#[test]
fn cpus_are_left_to_the_system_where_that_pays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs_err::create_dir(folder.join("machine")).unwrap();
    fake_machine::services(&folder.join("machine"));
    let model = "span = \"20s\"\ncpus = 4\n[[component]]\nname = \"task:daemon\"\npoisson = { rate = \"1/s\" }\nduration = { constant = \"5ms\" }\n";
    fs_err::write(folder.join("noise.toml"), model).unwrap();
    let of = |more: &[&str]| {
        let args = ["advise", "--noise", "noise.toml", "--ranks", "8,2048", "--sysroot", "machine"];
        transcript(folder, &[&args[..], more].concat())
    };
    let table = |text: String| {
        let from = text.find("with CPUs of each node").unwrap_or(text.len());
        text[from..].split("warning").next().unwrap().to_owned()
    };
    let mut printed = table(of(&["--leave", "0..3"]));
    let bound = of(&["--leave", "1,2", "--ranks-per-node", "2", "--binding", "bind"]);
    assert!(bound.starts_with("exit 0"), "{bound}");
    printed += &table(bound);
    let mut files: Vec<String> = fs_err::read_dir(folder.join("bind"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    printed += &format!("bind: {}\n", files.join(" "));
    for wrong in [&["--leave", "3..1"][..], &["--leave", "one"], &["--leave", "0", "--binding", "none"]] {
        printed += &of(wrong).split("--- stderr").last().unwrap().replace("warning", "\nwarning");
    }
    assert_snapshot!("left_to_the_system", printed);
}

/// A folder of one node's recordings is as if they were given one by one.
#[test]
fn recordings_of_one_node_in_a_folder_are_not_many_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    fs_err::create_dir(&runs).unwrap();
    node(&runs, "a.quell", &MODELS.iter().collect::<Vec<_>>());
    node(&runs, "b.quell", &[&MODELS[0]]);
    let set_host = |recording: &str, host: &str| {
        let path = runs.join(recording).join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
        manifest["host"] = host.into();
        fs_err::write(path, manifest.to_string()).unwrap();
    };
    let ask =
        |names: &[&str]| json(dir.path(), &[&["advise"][..], names, &["--ranks", "64", "--json"]].concat());
    set_host("a.quell", "n1");
    set_host("b.quell", "n1");
    let together = ask(&["runs"]);
    assert_eq!(together, ask(&["runs/a.quell", "runs/b.quell"]));
    let warnings = together["warnings"].as_array().unwrap();
    let few = warnings.iter().find(|one| one["code"] == "few-recordings").unwrap();
    assert_eq!((&few["host"], &few["recordings"]), (&"n1".into(), &2.into()));
    set_host("b.quell", "n2");
    assert_eq!(ask(&["runs"])["schema"], "quell.fleet/2");
}
