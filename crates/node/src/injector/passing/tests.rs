//! Commands of every launcher, with programs whose arguments look like options.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

const ALL: &str = "LD_PRELOAD, QUELL_A, QUELL_B";
/// A program whose arguments look like the options of every launcher.
const APP: &str =
    "./app -x 3 -n 4 --export=NONE -genv A B -genvnone --mca mca_base_env_list C -x LD_PRELOAD=/z.so";

fn loading() -> Loading {
    Loading { library: "/a.so".into(), variables: vec![("QUELL_A", "/s".into()), ("QUELL_B", "1".into())] }
}

fn pass(line: &str, environment: &[(&str, &str)]) -> Passed {
    let separator = if line.contains('^') { '^' } else { ' ' };
    let command: Vec<String> = line.split(separator).map(str::to_owned).collect();
    let site = Site {
        launcher: &|name| match crate::mpi::launcher_by_name(name) {
            Some(launcher) => launcher,
            None if name.starts_with("/opt/") => Launcher::Other,
            None => Launcher::OpenMpi(4),
        },
        environment: &|name| {
            environment.iter().find(|(one, _)| *one == name).map(|(_, value)| OsString::from(value))
        },
        file: &|name| match name {
            "apps" => Some("-np 1 -x A ./app\n-np 2 ./b".into()),
            "plain" => Some("-np 1 ./app\n".into()),
            "limits" => Some("-n 1 -envnone ./app\n".into()),
            _ => None,
        },
    };
    loading().pass(&command, &site)
}

fn words(line: &str, environment: &[(&str, &str)]) -> String {
    pass(line, environment).words.join(if line.contains('^') { "^" } else { " " })
}

fn variable(passed: &Passed, name: &str) -> Option<String> {
    let found = passed.variables.iter().find(|(one, _)| *one == name);
    found.map(|(_, value)| value.to_str().unwrap().to_owned())
}

#[test]
fn a_programs_own_arguments_are_no_options_of_its_launcher() {
    for before in [
        "mpirun -n 2",
        "mpiexec.hydra -n 2",
        "srun -n 2",
        "env A=1 mpirun -n 2",
        "/opt/mpirun -n 2",
        "jsrun -n 2",
    ] {
        for line in
            [format!("{before} {APP}"), format!("{before} -- {APP}"), format!("{before} {APP} : -n 2 {APP}")]
        {
            let passed = pass(&line, &[]);
            assert_eq!(passed.words.join(" "), line);
            assert_eq!(passed.doubts, []);
            assert_eq!(variable(&passed, OPEN_MPI_LIST).as_deref(), Some("LD_PRELOAD;QUELL_A;QUELL_B"));
        }
        let script = format!("sh^-c^{before} {APP} && echo -x");
        assert_eq!((words(&script, &[]), pass(&script, &[]).doubts), (script, Vec::new()));
    }
}

#[test]
fn open_mpi_exports_what_its_command_exports_and_ours_in_each_part() {
    let new = "-x LD_PRELOAD -x QUELL_A -x QUELL_B";
    for (line, expected) in [
        (format!("mpirun -x A -n 2 {APP}"), format!("mpirun {new} -x A -n 2 {APP}")),
        (
            format!("taskset -c 0 mpirun -n 1 {APP} : -x A {APP}"),
            format!("taskset -c 0 mpirun {new} -n 1 {APP} : {new} -x A {APP}"),
        ),
        (
            "mpirun -x LD_PRELOAD=/b.so -x QUELL_A ./a".into(),
            "mpirun -x QUELL_B -x LD_PRELOAD=/a.so:/b.so -x QUELL_A ./a".into(),
        ),
        // Whoever has this option, an option of Open MPI at its beginning is one.
        ("mpirun --site fast -x A ./app".into(), format!("mpirun {new} --site fast -x A ./app")),
        ("sh^-c^cd /tmp; mpirun -x A ./app".into(), format!("sh^-c^cd /tmp; mpirun {new} -x A ./app")),
        (format!("prterun --prtemca a b --x A {APP}"), format!("prterun {new} --prtemca a b --x A {APP}")),
        ("/opt/mpirun -x A ./app".into(), format!("/opt/mpirun {new} -x A ./app")),
    ] {
        let passed = pass(&line, &[]);
        assert_eq!(words(&line, &[]), expected);
        assert_eq!(variable(&passed, OPEN_MPI_LIST), None, "Open MPI ends a job that has both");
        assert_eq!(passed.doubts, []);
    }
}

#[test]
fn a_list_of_open_mpis_is_continued() {
    let line = "mpirun --mca mca_base_env_list A=1;LD_PRELOAD=/b.so -n 2 ./app";
    let listed = "mpirun --mca mca_base_env_list A=1;LD_PRELOAD=/a.so:/b.so;QUELL_A;QUELL_B -n 2 ./app";
    assert_eq!(words(line, &[]), listed);
    let passed = pass("mpirun -n 2 --site fast ./app -x A", &[(OPEN_MPI_LIST, "X=1"), (PRELOAD, "/b.so")]);
    assert_eq!(passed.words.join(" "), "mpirun -n 2 --site fast ./app -x A", "-x can only be the program's");
    assert_eq!(variable(&passed, OPEN_MPI_LIST).as_deref(), Some("X=1;LD_PRELOAD;QUELL_A;QUELL_B"));
    assert_eq!(variable(&passed, PRELOAD).as_deref(), Some("/a.so:/b.so"));
}

#[test]
fn hydra_is_given_values_where_it_would_not_pass_variables() {
    let new = "-genv LD_PRELOAD /a.so -genv QUELL_A /s -genv QUELL_B 1";
    for (line, expected) in [
        (format!("mpiexec.hydra -genvnone -n 2 {APP}"), format!("mpiexec.hydra {new} -genvnone -n 2 {APP}")),
        (
            format!("mpiexec.hydra -n 1 {APP} : -envlist=A -n 1 {APP}"),
            format!("mpiexec.hydra {new} -n 1 {APP} : -envlist=A -n 1 {APP}"),
        ),
        (
            "mpiexec.hydra --site fast -genvnone ./app".into(),
            format!("mpiexec.hydra {new} --site fast -genvnone ./app"),
        ),
        ("mpiexec.hydra -configfile limits".into(), format!("mpiexec.hydra {new} -configfile limits")),
        (
            "mpiexec.hydra -genv LD_PRELOAD /b.so -n 1 ./a".into(),
            "mpiexec.hydra -genv LD_PRELOAD /a.so:/b.so -n 1 ./a".into(),
        ),
        (
            "mpiexec.hydra -n 1 -env LD_PRELOAD=/b.so ./a".into(),
            "mpiexec.hydra -n 1 -env LD_PRELOAD=/a.so:/b.so ./a".into(),
        ),
    ] {
        assert_eq!(words(&line, &[]), expected);
        assert_eq!(pass(&line, &[]).doubts, []);
    }
    assert_eq!(words("mpiexec.hydra ./app", &[("HYDRA_ENV", "none")]), format!("mpiexec.hydra {new} ./app"));
}

#[test]
fn srun_exports_ours_where_it_exports_a_list() {
    for (export, expected) in [
        ("--export=ALL", "--export=ALL"),
        ("--export=ALL,A=1", "--export=ALL,A=1"),
        ("--export=NONE", "--export=LD_PRELOAD,QUELL_A,QUELL_B"),
        ("--export nil", "--export LD_PRELOAD,QUELL_A,QUELL_B"),
        ("--export=A,B=1", "--export=A,B=1,LD_PRELOAD,QUELL_A,QUELL_B"),
        ("--export=ALL,LD_PRELOAD=/b.so", "--export=ALL,LD_PRELOAD=/a.so:/b.so"),
    ] {
        let line = |export: &str| format!("srun -N2 {export} {APP} : -n2 {export} {APP}");
        assert_eq!(words(&line(export), &[]), line(expected));
    }
    let list = |value: &str| variable(&pass("sh job.sh", &[(SLURM_LIST, value)]), SLURM_LIST);
    assert_eq!(list("NONE").as_deref(), Some("LD_PRELOAD,QUELL_A,QUELL_B"), "as a batch script has it");
    assert_eq!(list("ALL"), None);
}

#[test]
fn what_cannot_be_passed_is_reported() {
    let names = || ALL.to_owned();
    let passed = pass("mpirun --app apps", &[]);
    assert_eq!(passed.doubts, [Doubt::AppFile { file: "apps".into(), names: names() }]);
    assert_eq!(variable(&passed, OPEN_MPI_LIST), None);
    assert_eq!(pass("mpirun --app plain", &[]).doubts, []);
    let passed = pass("/opt/mpirun --site fast -x A ./app", &[]);
    assert_eq!(passed.doubts, [Doubt::UnknownLauncher { launcher: "/opt/mpirun".into(), names: names() }]);
    assert_eq!((passed.words.len(), variable(&passed, OPEN_MPI_LIST)), (6, None));
    let unclear = |launcher: &str, word: &str| Doubt::Unclear {
        launcher: launcher.into(),
        word: word.into(),
        names: names(),
    };
    let line = "srun --site fast --export=A ./app";
    assert_eq!(
        (words(line, &[]), pass(line, &[]).doubts),
        (line.into(), vec![unclear("srun", "--export=A")])
    );
    let line = "mpirun --site fast --mca mca_base_env_list A ./app";
    assert_eq!(
        (words(line, &[]), pass(line, &[]).doubts),
        (line.into(), vec![unclear("mpirun", OPEN_MPI_PARAMETER)])
    );
    let line = "sh^-c^srun --export=$LIST ./app";
    let expanded = Doubt::Expanded { word: "--export=$LIST".into(), names: names() };
    assert_eq!((words(line, &[]), pass(line, &[]).doubts), (line.into(), vec![expanded]));
    assert!(
        pass(line, &[]).doubts[0]
            .to_string()
            .ends_with("they lack LD_PRELOAD, QUELL_A, QUELL_B unless the list has them")
    );
}
