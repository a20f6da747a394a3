//! What quell prints: help, refusals, exit codes.

use std::path::Path;

use crate::support::{json, netgauge, run, transcript};
use insta::assert_snapshot;

#[test]
fn help_names_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(transcript(dir.path(), &["--help"]));
    assert_snapshot!(transcript(dir.path(), &[]));
    assert_eq!(
        run(dir.path(), &["--quiet"]).status.code(),
        Some(2),
        "an option without a verb is wrong usage"
    );
}

#[test]
fn each_verb_explains_itself_with_examples() {
    let dir = tempfile::tempdir().unwrap();
    let verbs = verbs_of(dir.path(), &[]);
    assert!(verbs.len() >= 18, "{verbs:?}");
    for verb in verbs {
        let text = transcript(dir.path(), &[&verb, "--help"]);
        assert!(text.contains("EXAMPLES") && text.starts_with("exit 0"), "{verb}: {text}");
    }
}

/// The verbs that the help lists, or those of a verb.
fn verbs_of(folder: &Path, within: &[&str]) -> Vec<String> {
    let help = transcript(folder, &[within, &["--help"]].concat());
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The description of a verb may span several lines.
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs = listed.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    verbs.map(str::to_owned).collect()
}

#[test]
fn refusals_are_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    netgauge(folder);
    assert!(run(folder, &["convert", "selfish.txt", "a.quell"]).status.success());
    fs_err::write(folder.join("silent.txt"), "# Selfish Benchmark\n# Measurement period: 1.0 s\n").unwrap();
    assert!(run(folder, &["convert", "silent.txt", "silent.quell"]).status.success());
    fs_err::write(folder.join("bad.toml"), "[[component]]\n").unwrap();
    fs_err::create_dir(folder.join("empty.quell")).unwrap();
    let manifest = fs_err::read_to_string(folder.join("a.quell/manifest.json")).unwrap();
    fs_err::create_dir(folder.join("newer.quell")).unwrap();
    let ours = format!("\"version\": {}", quell_recording::FORMAT_VERSION);
    let newer = manifest.replacen(&ours, "\"version\": 7", 1);
    fs_err::write(folder.join("newer.quell/manifest.json"), newer).unwrap();
    let cases: [&[&str]; 38] = [
        &["record", "--effect", "6", "--sources", "off"],
        &["show", "nothing.quell"],
        &["show", "empty.quell"],
        &["show", "newer.quell"],
        &["predict"],
        &["predict", "silent.quell"],
        &["predict", "a.quell", "--ranks", "0"],
        &["predict", "a.quell", "--ranks", "NaN"],
        &["predict", "a.quell", "--quantum", "0ms"],
        &["predict", "a.quell", "--quantum", "NaN"],
        &["predict", "a.quell", "--phases", "0"],
        &["predict", "a.quell", "--skew", "1ms"],
        &["predict", "a.quell", "--sync", "start", "--drift", "NaN"],
        &["predict", "--noise", "bad.toml"],
        &["record", "-o", "x.quell", "--cpus", "9999"],
        &["record", "-o", "x.quell", "--duration", "0s"],
        &["record", "-o", "x.quell", "--method", "fwq", "--quantum", "30s"],
        &["record", "-o", "x.quell", "--threshold", "-1ns"],
        &["record", "-o", "x.quell", "--method", "memory", "--threshold", "1us"],
        &["record", "-o", "x.quell", "--quantum", "1ms"],
        &["record", "-o", "."],
        &["record", "-o", "x.quell", "--sources", "off", "--cost"],
        &["record", "-o", "x.quell", "--realtime", "1", "--duration", "1s"],
        &["convert", "a.quell", "selfish.txt"],
        &["bench", "bsp", "--mpi", "nowhere"],
        &["bench", "bsp", "--mpi", "/bin/false"],
        &["bench", "bsp", "--quantum", "0ns"],
        &["bench", "allreduce", "--count", "0"],
        &["bench", "fwq", "-n", "2Mi"],
        &["bench", "halo", "-n", "2", "--leave", "2"],
        &["bench", "loggp", "-n", "1"],
        &["bench", "show", "."],
        &["record", "./prog"],
        &["simulate", "a.quell"],
        &["simulate", "."],
        &["convert", "a.quell", "out.json"],
        &["predict", "a.quell", "-o", "out.json"],
        &["bench-nod"],
    ];
    let printed = cases.map(|args| {
        let text = transcript(folder, args);
        assert!(["exit 1\n", "exit 2\n"].iter().any(|code| text.starts_with(code)), "{args:?}: {text}");
        format!("$ quell {}\n{text}\n", args.join(" "))
    });
    // The number of CPUs depends on the machine.
    let present = fs_err::read_to_string("/sys/devices/system/cpu/present").unwrap();
    assert_snapshot!(printed.concat().replace(&format!("CPUs {}", present.trim()), "CPUs [PRESENT]"));
    assert!(!folder.join("x.quell").exists(), "a refused run leaves nothing behind");
}

#[test]
fn names_from_files_reach_the_terminal_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let model = "name = \"\\u001b]0;owned\\u0007\"\nspan = \"1ms\"\n[[component]]\nperiodic = { period = \"100us\" }\nduration = { constant = \"1us\" }\n";
    fs_err::write(dir.path().join("m.toml"), model).unwrap();
    let output = run(dir.path(), &["predict", "--noise", "m.toml", "--ranks", "64", "--quantum", "500us"]);
    assert!(output.status.success());
    let printed = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&printed).contains("owned") && !printed.contains(&0x1b));
}

#[test]
fn json_has_the_fields_that_others_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    assert!(run(dir.path(), &["convert", "selfish.txt", "a.quell"]).status.success());
    let show = json(dir.path(), &["show", "a.quell", "--json"]);
    assert_eq!((show["schema"].as_str(), show["lost"].as_u64()), (Some("quell.show/2"), Some(0)));
    for field in ["cpu", "span_ns", "detours", "noise_ns", "overhead_percent", "resolution_ns", "max_ns"] {
        assert!(show["cpus"][0].get(field).is_some(), "{field}");
    }
    let predict = json(dir.path(), &["predict", "a.quell", "--ranks", "16,256", "--phases", "100", "--json"]);
    for field in ["quantum_ns", "op", "sync", "phases", "seed"] {
        assert!(predict.get(field).is_some(), "{field}");
    }
    for field in ["ranks", "base_phase_ns", "mean_phase_ns", "slowdown_percent", "ci95_percent", "supported"]
    {
        assert!(predict["points"][1].get(field).is_some(), "{field}");
    }
    assert_eq!(predict["schema"], "quell.predict/2");
}

#[test]
fn doctor_answers_whether_sources_can_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let document = json(dir.path(), &["doctor", "--json"]);
    assert_eq!(document["schema"], "quell.doctor/1");
    let checks = document["checks"].as_array().unwrap();
    // The tracepoints show in the kernel's types.
    let has_types =
        checks.iter().any(|one| one["subject"] == "kernel types (BTF)" && one["verdict"] == "good");
    let hooks = has_types.then_some("kernel hooks");
    let subjects = ["noise sources", "kernel version", "kernel types (BTF)", "eBPF privileges", "MPI"];
    for subject in subjects.into_iter().chain(hooks) {
        let check = checks.iter().find(|check| check["subject"] == subject).unwrap();
        let missing = check["verdict"] == "missing";
        assert!(!missing || check["advice"].is_string(), "{check}");
    }
}

#[test]
fn the_committed_reference_is_that_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(dir.path(), &["generate", "--reference", "new"]).status.success());
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let new = dir.path().join("new");
    for folder in [".", "schemas", "commands"] {
        let names = |root: &std::path::Path| -> Vec<_> {
            let entries = fs_err::read_dir(root.join(folder)).into_iter().flatten().flatten();
            entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name()).collect()
        };
        for name in names(&new) {
            let place = std::path::Path::new(folder).join(&name);
            let old = fs_err::read_to_string(committed.join(&place)).unwrap_or_default();
            let now = fs_err::read_to_string(new.join(&place)).unwrap();
            assert!(old == now, "docs/reference/{} is stale: run ./x docs", place.display());
        }
        // Pages that are no longer generated are stale too. Pages next to these folders are written by hand.
        let made = names(&new);
        let left = names(&committed).into_iter().find(|name| folder != "." && !made.contains(name));
        assert_eq!(left, None, "docs/reference/{folder} holds a page of something that is gone");
    }
}

#[test]
fn man_pages_and_completions_know_every_verb_that_people_see() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(dir.path(), &["generate", "--man", "man", "--completions", "share"]).status.success());
    let read = |name: &str| fs_err::read_to_string(dir.path().join(name)).unwrap();
    for page in ["quell.1", "quell-study.1", "quell-tune-try.1"] {
        assert!(read(&format!("man/{page}")).contains(".SH NAME"), "{page}");
    }
    for script in [
        "bash-completion/completions/quell",
        "zsh/vendor-completions/_quell",
        "fish/vendor_completions.d/quell.fish",
    ] {
        let text = read(&format!("share/{script}"));
        assert!(text.contains("serve-metrics") && text.contains("threshold"), "{script}");
        assert!(!text.contains("bench-node"), "{script} shows what people do not type");
    }
}

#[test]
fn a_recording_by_nearly_that_name_is_suggested() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    assert!(run(dir.path(), &["convert", "selfish.txt", "node7.quell"]).status.success());
    for (typed, meant) in [("node8.quell", true), ("node7", true), ("elsewhere.quell", false)] {
        let text = transcript(dir.path(), &["show", typed]);
        assert_eq!(text.contains("did you mean node7.quell?"), meant, "{text}");
    }
}

#[test]
fn doctor_prints_commands_that_a_shell_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["doctor", "--commands"]);
    fs_err::write(dir.path().join("fix.sh"), &output.stdout).unwrap();
    let read = std::process::Command::new("sh").arg("-n").arg(dir.path().join("fix.sh")).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert!(output.stdout.starts_with(b"# Commands that lift limits"));
}

#[test]
fn limits_that_do_not_hold_end_with_three() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    let text = fs_err::read_to_string(dir.path().join("selfish.txt")).unwrap();
    let longer = text.lines().map(|line| match line.split_once('\t') {
        Some((start, duration)) => format!("{start}\t{}\n", duration.parse::<f64>().unwrap() * 2.0),
        None => format!("{line}\n"),
    });
    fs_err::write(dir.path().join("longer.txt"), longer.collect::<String>()).unwrap();
    let code = |args: &[&str]| run(dir.path(), args).status.code();
    assert_eq!(code(&["compare", "selfish.txt", "longer.txt", "--json", "--html", "c.html"]), Some(0));
    assert!(dir.path().join("c.html").exists());
    assert_eq!(code(&["compare", "selfish.txt", "longer.txt", "--fail-above", "10%"]), Some(3));
    assert_eq!(code(&["compare", "longer.txt", "selfish.txt", "--fail-above", "10%"]), Some(0));
    assert_eq!(code(&["compare", "selfish.txt", "selfish.txt", "--fail-above", "kl=0.000001"]), Some(0));
    assert_eq!(code(&["compare", "selfish.txt", "longer.txt", "--fail-above", "nonsense"]), Some(2));
}

#[test]
fn equal_seeds_give_equal_bytes_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    for sync in [&["none"][..], &["start", "--skew", "1ms", "--drift", "50"], &["phase"]] {
        let on = |threads: &str| {
            let mut args =
                vec!["predict", "selfish.txt", "--phases", "300", "--json", "--threads", threads, "--sync"];
            args.extend(sync);
            run(dir.path(), &args).stdout
        };
        let one = on("1");
        assert!(!one.is_empty());
        assert_eq!(one, on("2"), "{sync:?}");
    }
}

/// Every character that may control a terminal, except for the line end and the tab, which text has: C0, DEL, C1, and the marks that change
/// the direction of writing.
fn steering() -> String {
    let controls = ('\u{1}'..='\u{9f}').filter(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    controls.chain("\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}".chars()).collect()
}

#[test]
fn what_is_printed_does_not_control_the_terminal() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let hostile = steering();
    netgauge(folder);
    assert!(run(folder, &["convert", "selfish.txt", "a.quell"]).status.success());
    // A recording whose texts are all hostile.
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs_err::read(folder.join("a.quell/manifest.json")).unwrap()).unwrap();
    for field in ["host", "kernel", "processor", "note"] {
        manifest[field] = hostile.clone().into();
    }
    manifest["command"] = serde_json::json!([hostile]);
    fs_err::write(folder.join("a.quell/manifest.json"), manifest.to_string()).unwrap();
    let name = format!("{}.quell", hostile.replace('/', ""));
    fs_err::rename(folder.join("a.quell"), folder.join(&name)).unwrap();
    let rows = format!("cpu,start_ns,duration_ns,net_ns,source,cause\n0,1000,500,500,task {hostile},\n");
    fs_err::write(folder.join("sources.csv"), rows).unwrap();
    fs_err::write(folder.join("text"), &hostile).unwrap();
    fs_err::write(
        folder.join("net.toml"),
        format!("name = {:?}\nsource = 'x\u{1b}'\nL_ns = '{hostile}'\n", "a\u{1b}[2J"),
    )
    .unwrap();
    fs_err::write(folder.join("labels.goal"), format!("num_ranks 1\nrank 0 {{\n{hostile}: calc 1\n}}\n"))
        .unwrap();
    let bytes: OsString = OsString::from_vec(vec![b'x', 0xff, 0x1b, b'[', b'2', b'J']);
    let os = |text: &str| OsString::from(text);
    let h = || os(&hostile);
    let n = || os(&name);
    let mut lines: Vec<Vec<OsString>> = vec![
        vec![os("show"), n()],
        vec![os("show"), n(), os("--json")],
        vec![os("predict"), n(), os("--ranks"), os("4"), os("--phases"), os("20")],
        vec![os("predict"), n(), os("--ranks"), os("4"), os("--phases"), os("20"), os("--json")],
        vec![os("predict"), n(), os("--ranks"), h()],
        vec![os("advise"), n(), os("--ranks"), os("4"), os("--phases"), os("20")],
        vec![os("compare"), n(), n()],
        vec![os("compare"), n(), n(), os("--json")],
        vec![os("report"), n(), os("-o"), os("out.html"), os("--ranks"), os("4"), os("--phases"), os("20")],
        vec![os("convert"), n(), os("out.csv")],
        vec![os("convert"), os("sources.csv"), os("sources.quell")],
        vec![os("show"), os("sources.quell"), os("--by"), os("source")],
        vec![os("show"), os("sources.quell"), os("--by"), os("source"), os("--json")],
        vec![os("convert"), os("text"), os("text.quell")],
        vec![os("simulate"), os("labels.goal")],
        vec![os("goal"), os("check"), os("labels.goal")],
        vec![os("goal"), os("make"), os("--pattern"), h(), os("-o"), os("x.goal")],
        vec![
            os("simulate"),
            os("--pattern"),
            os("ring"),
            os("--ranks"),
            os("4"),
            os("--net"),
            os("net.toml"),
        ],
        vec![os("track"), n()],
        vec![os("track"), h()],
        vec![os("replay"), n(), os("--dry-run"), os("--"), h()],
        vec![os("tune"), os("audit"), h()],
        vec![os("tune"), os("plan"), h()],
        vec![os("bench"), h()],
        vec![os("record"), os("-o"), n(), os("--duration"), h()],
        vec![os("watch"), os("--interval"), h()],
        vec![os("doctor"), h()],
        vec![h()],
    ];
    // Hosts, a model and a plan whose texts are all hostile.
    fs_err::create_dir(folder.join("hosts")).unwrap();
    for host in ["a", "b", "c"] {
        fs_err::create_dir(folder.join("hosts").join(format!("{host}{name}"))).unwrap();
        for file in fs_err::read_dir(folder.join(&name)).unwrap() {
            let file = file.unwrap();
            let to = folder.join("hosts").join(format!("{host}{name}")).join(file.file_name());
            fs_err::copy(file.path(), to).unwrap();
        }
    }
    let text = serde_json::to_string(&hostile).unwrap();
    let model = format!(
        "name = {text}\n[[component]]\nname = {text}\npoisson = {{ rate = '9/s' }}\nduration = {{ constant = '9us' }}\n"
    );
    fs_err::write(folder.join("model.toml"), model).unwrap();
    fs_err::write(folder.join("plan.toml"), format!("profile = {text}\nid = {text}\n")).unwrap();
    fs_err::write(folder.join("plan.json"), format!("{{\"schema\": {text}, {text}: [{text}]}}")).unwrap();
    for words in [
        "show hosts",
        "show hosts --json",
        "advise hosts --ranks 4",
        "report hosts -o hosts.html --ranks 4",
        "predict model.toml --ranks 4 --phases 20",
        "advise model.toml --ranks 4 --phases 20",
        "simulate --pattern ring --ranks 4 --noise model.toml --baseline",
        "tune plan model.toml",
        "tune apply plan.toml",
        "tune apply plan.json",
        "tune export plan.json",
    ] {
        lines.push(words.split(' ').map(os).collect());
    }
    // Each verb with texts of both kinds as its argument, as an option and as the value of one.
    let mut verbs: Vec<Vec<String>> = verbs_of(folder, &[]).into_iter().map(|verb| vec![verb]).collect();
    for verb in ["tune", "goal", "bench"] {
        verbs.extend(verbs_of(folder, &[verb]).into_iter().map(|within| vec![verb.to_owned(), within]));
    }
    assert!(verbs.len() >= 30, "{verbs:?}");
    for verb in verbs {
        for hostile in [h(), bytes.clone()] {
            let mut option = os("--");
            option.push(&hostile);
            for more in
                [vec![hostile.clone()], vec![option], vec![os("-o"), hostile.clone(), hostile.clone()]]
            {
                lines.push(verb.iter().map(|word| os(word)).chain(more).collect());
            }
        }
    }
    for line in lines {
        let output = crate::support::quell(folder).args(&line).output().unwrap();
        for printed in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(printed);
            let found =
                text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || hostile.contains(*c));
            assert_eq!(found, None, "{line:?}: {text:?}");
        }
    }
    let page = fs_err::read_to_string(folder.join("out.html")).unwrap();
    let found = page.chars().find(|c| hostile.contains(*c));
    assert_eq!(found, None, "in the page");
}
