//! Arguments of `quell tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use quell_recording::Nanos;

use quell_request::RankList;

use crate::values::CpuList;

/// Arguments of `quell tune`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune audit                               what is applied here, and what could be\n  quell tune audit node.quell                    ordered by the noise that was recorded here\n  quell tune audit thp                           one mitigation, with its places and caveats\n  quell tune plan thp vm-stat-interval -o PLAN   what would be written, as a diff\n  quell tune apply PLAN                          checks, and writes nothing\n  quell tune apply PLAN --yes --for 1h           writes, and reverts after an hour\n  quell tune apply PLAN --yes --with -- ./job    only while the command runs\n  quell tune verify; quell tune status; quell tune revert\n  quell tune try thp-defrag --yes                measures whether it helps\n\nEXIT CODES\n  0 done   1 failed   2 wrong usage   3 refused by a guard rail, or a setting differs from what it should be"
)]
pub struct Tune {
    #[command(subcommand)]
    pub verb: TuneVerb,
}

/// The verbs of `tune`.
#[derive(Debug, Subcommand)]
pub enum TuneVerb {
    /// List which mitigations are applied, which are not, and which do not exist on this machine; needs no root and writes nothing.
    Audit(TuneAudit),
    /// Show what chosen mitigations would write here, old value next to new; writes nothing to the machine.
    Plan(TunePlan),
    /// Apply a plan, so that it can be reverted whatever happens.
    Apply(TuneApply),
    /// Check whether what was applied is still in place; writes nothing.
    Verify(TuneVerify),
    /// Restore the original values.
    Revert(TuneRevert),
    /// Show what is applied here.
    Status(TuneStatus),
    /// Export a plan for other tools: TuneD, a shell script, Slurm's prolog and epilog, bindings of ranks.
    Export(TuneExport),
    /// Copy what `tune` reads of this machine to a folder, to audit it and plan for it elsewhere with --sysroot.
    Copy(TuneCopy),
    /// Keep a profile applied while CPUs, devices and threads come and go, and revert it at the end.
    Serve(TuneServe),
    /// Measure, with and without in random order, whether a mitigation helps here.
    Try(Box<TuneTry>),
}

/// Arguments of `quell tune copy`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The copy has command lines of processes in it, and no secrets of process 1's environment. Its file\nnot-readable lists what this user may not read; an audit of the copy may not read it either.\n\nEXAMPLES\n  sudo quell tune copy node7                     on the node\n  quell tune audit --sysroot node7               elsewhere"
)]
pub struct TuneCopy {
    /// The folder to make; it must not exist, or be empty.
    #[arg(value_name = "DIR")]
    pub output: PathBuf,
    /// Copy from a copy of a machine below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Folder with the site's own mitigations, and its profiles in the folder `profiles`.
    #[arg(long, value_name = "DIR", default_value = SITE)]
    pub site: PathBuf,
}

/// The machine to look at, and its site's mitigations.
#[derive(Debug, ClapArgs)]
pub struct TuneMachine {
    /// Read (and write) a copy of a machine's /proc, /sys and /etc below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Folder with the site's own mitigations, and its profiles in the folder `profiles`.
    #[arg(long, value_name = "DIR", default_value = SITE)]
    pub site: PathBuf,
}

/// Options for how to apply mitigations.
#[derive(Debug, ClapArgs)]
pub struct AuditArgs {
    /// The CPUs that compute, as in `1,3-5`; if not given, the isolated ones, else all but the first core of each NUMA node.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// The process to place, for mitigations of a process.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Value to use instead of the catalogue's.
    #[arg(long = "set", value_name = "ID=VALUE", value_parser = setting)]
    pub values: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (id, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not ID=VALUE"))?;
    Ok((id.to_owned(), value.to_owned()))
}

/// Arguments of `quell tune audit`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune audit\n  quell tune audit node.quell              ordered by the noise that was recorded here\n  quell tune audit thp irq-cpu0            these, place by place\n  quell tune audit --cpus 2-7 --json"
)]
pub struct TuneAudit {
    /// Mitigations to show in full, and recordings of this node to order all mitigations by.
    #[arg(value_name = "ID|RECORDING")]
    pub what: Vec<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Write an HTML page.
    #[arg(long, value_name = "PAGE.html")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub options: AuditArgs,
    #[command(flatten)]
    pub machine: TuneMachine,
}

/// Arguments of `quell tune plan`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune plan thp vm-stat-interval -o PLAN\n  quell tune plan --profile hpc-node -o PLAN\n  quell tune plan vm-stat-interval --set vm-stat-interval=60 --json"
)]
pub struct TunePlan {
    /// Mitigations, by id.
    #[arg(value_name = "ID", required_unless_present = "profile")]
    pub ids: Vec<String>,
    /// A set of mitigations: hpc-node, realtime, vm-guest, or one of the site's, in the folder `profiles` of --site.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Write the plan to this file, for `apply`.
    #[arg(long, short, value_name = "PLAN")]
    pub output: Option<PathBuf>,
    /// Print the plan as JSON.
    #[arg(long)]
    pub json: bool,
    /// Make the changes survive a reboot, in files that belong to quell; boot options are staged.
    #[arg(long)]
    pub persist: bool,
    #[command(flatten)]
    pub options: AuditArgs,
    #[command(flatten)]
    pub machine: TuneMachine,
}

/// The highest risk to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RiskName {
    /// No effect that a user of the node would notice, except less noise.
    Low,
    /// May disable a feature that someone uses.
    Medium,
    /// The node can hang, lose work or lose a protection.
    High,
}

/// What the user permits.
#[derive(Debug, ClapArgs)]
pub struct TuneAllow {
    /// The highest risk to accept.
    #[arg(long, value_enum, default_value = "low")]
    pub max_risk: RiskName,
    /// Apply even if another program (TuneD, kubelet) owns the node's settings.
    #[arg(long)]
    pub allow_owner: bool,
    /// Apply even if other users are active here.
    #[arg(long)]
    pub allow_users: bool,
}

/// Arguments of `quell tune apply`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune apply PLAN                    checks, and writes nothing\n  quell tune apply PLAN --yes --for 1h     writes, and reverts after an hour\n  quell tune apply PLAN --yes --until-pid 4711\n  quell tune apply PLAN --yes --with -- ./job"
)]
pub struct TuneApply {
    /// The plan that `quell tune plan -o` wrote.
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Write to the machine; without it, the plan is only checked.
    #[arg(long)]
    pub yes: bool,
    /// Revert after this time, whatever happens.
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Revert when this process ends.
    #[arg(long, value_name = "PID")]
    pub until_pid: Option<u32>,
    /// Revert when the command after `--` ends.
    #[arg(long, requires = "command")]
    pub with: bool,
    /// Print one JSON document.
    #[arg(long, conflicts_with = "with")]
    pub json: bool,
    #[command(flatten)]
    pub allow: TuneAllow,
    /// Folder with the copy of a machine that the plan is for.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Folder with the site's own mitigations; a plan can only write what the catalogue lists.
    #[arg(long, value_name = "DIR", default_value = SITE)]
    pub site: PathBuf,
    /// The command for --with.
    #[arg(last = true, value_name = "CMD", requires = "with")]
    pub command: Vec<OsString>,
}

/// Arguments of `quell tune serve`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Whatever ends the service, two processes are left to revert what it applied. A setting that another program changes is left to that program.\n\nEXAMPLES\n  quell tune serve hpc-node                                  checks, and writes nothing\n  sudo quell tune serve hpc-node --yes --max-risk medium     until Ctrl-C\n  sudo systemctl enable --now quell-tune@hpc-node"
)]
pub struct TuneServe {
    /// A set of mitigations: hpc-node, realtime, vm-guest, or one of the site's, in the folder `profiles` of --site.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// Write to the machine; without it, the plan is only checked.
    #[arg(long)]
    pub yes: bool,
    /// Look for new threads and interrupts this often; CPUs and devices report themselves.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub every: Nanos,
    #[command(flatten)]
    pub options: AuditArgs,
    #[command(flatten)]
    pub allow: TuneAllow,
    #[command(flatten)]
    pub machine: TuneMachine,
}

/// Arguments of `quell tune verify`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune verify                        what was applied\n  quell tune verify PLAN --json"
)]
pub struct TuneVerify {
    /// A plan to compare the machine with; what is applied, if not given.
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Verify a copy of a machine below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Arguments of `quell tune revert`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune revert                        everything\n  quell tune revert --forget               forget settings that someone else changed"
)]
pub struct TuneRevert {
    /// The id of a transaction, from `quell tune status`: what one `tune apply` wrote, with `--persist` its files too; all, if not
    /// given.
    #[arg(value_name = "TRANSACTION")]
    pub id: Option<String>,
    /// Revert only what a crash or a power cut interrupted, and close what a boot has reset: quell-recover.service does this at boot.
    #[arg(long, conflicts_with_all = ["id", "force", "forget"])]
    pub interrupted: bool,
    /// Restore the original value even where someone else has changed it since.
    #[arg(long, conflicts_with = "forget")]
    pub force: bool,
    /// Leave what someone else has changed as it is, permanently.
    #[arg(long)]
    pub forget: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Revert in a copy of a machine below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Arguments of `quell tune status`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "EXAMPLES\n  quell tune status\n  quell tune status --json")]
pub struct TuneStatus {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Look at a copy of a machine below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// Output formats of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// A TuneD profile: a folder with tuned.conf.
    Tuned,
    /// A shell script that applies the plan; with `undo` it reverts.
    Shell,
    /// Slurm's prolog and epilog.
    Slurm,
    /// An Open MPI rankfile, and the bindings of MPICH and srun for this node.
    Bindings,
}

/// Arguments of `quell tune export`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune export tuned PLAN -o profile\n  quell tune export slurm PLAN -o slurm    a prolog and an epilog\n  quell tune export bindings --ranks 4"
)]
pub struct TuneExport {
    /// The format to write.
    #[arg(value_enum)]
    pub form: ExportForm,
    /// The plan that `quell tune plan -o` wrote; not needed for bindings.
    #[arg(value_name = "PLAN", required_if_eq_any = [("form", "tuned"), ("form", "shell"), ("form", "slurm")])]
    pub plan: Option<PathBuf>,
    /// Folder to write into; prints to stdout, if not given.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Number of ranks on this node, for bindings; one per compute core, if not given.
    #[arg(long, value_name = "N")]
    pub ranks: Option<u32>,
    #[command(flatten)]
    pub options: AuditArgs,
    /// Take the topology from a copy of a machine below this folder.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
}

/// A share, as in `5%`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.filter(|percent| *percent > 0.0 && *percent <= 100.0).map(|percent| percent / 100.0);
    share.ok_or_else(|| format!("`{text}` is not a share above 0 % and up to 100 %, as in `5%`"))
}

/// Arguments of `quell tune try`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell tune try thp-defrag                shows what it would try\n  quell tune try thp-defrag --yes          ten pairs of three seconds each\n  quell tune try thp-defrag --yes --until-resolved --at-most 20min\n  quell tune try irq-cpu0 ksm --yes --pairs 20 --max-risk medium --json\n\nVERDICTS\n  it helps, it makes more noise   the noise that it addresses, or all detours, changed\n  no effect larger than X         both changed by less than X, which --smallest sets\n  inconclusive                    neither is certain; about how many more pairs would tell,\n                                or that what it addresses did not occur: try it while it does\n\nEach pair is one recording with the mitigation and one without; a coin decides which comes first. A figure counts as changed if the\nconfidence interval of its difference leaves out 0 and ranks agree, corrected for the number of figures and of looks. With\n--until-resolved, looks follow at twice as many pairs each time. Where load of others explains the differences, it is adjusted for;\nno effect must hold without that, too."
)]
pub struct TuneTry {
    /// Mitigations to try, each by itself; those joined by `+` together.
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Write to the machine; without it, only the plan is shown.
    #[arg(long)]
    pub yes: bool,
    /// Number of pairs of recordings; with --until-resolved, before the first look. At 99 % confidence, fewer than 9 show nothing.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(5..=1000))]
    pub pairs: u32,
    /// Record more pairs, twice as many each time, until the verdict is no longer inconclusive.
    #[arg(long)]
    pub until_resolved: bool,
    /// Maximum time that --until-resolved takes for each mitigation; the first look always takes place.
    #[arg(long, default_value = "10min", value_name = "TIME", requires = "until_resolved")]
    pub at_most: Nanos,
    /// The smallest effect of interest: a share of the noise without the mitigation.
    #[arg(long, default_value = "5%", value_name = "SHARE", value_parser = share)]
    pub smallest: f64,
    /// Length of each recording.
    #[arg(long, default_value = "3s", value_name = "TIME")]
    pub duration: Nanos,
    /// Time between a change and the recording that follows it; longer for mitigations that take effect later.
    #[arg(long, default_value = "200ms", value_name = "TIME")]
    pub settle: Nanos,
    /// Leave the mitigations that help applied.
    #[arg(long)]
    pub keep: bool,
    /// The CPUs to record, as in `0,2-5`; those that compute, if not given.
    #[arg(long, value_name = "LIST")]
    pub watch: Option<CpuList>,
    /// Numbers of ranks to predict for, with and without the mitigation.
    #[arg(long, default_value = "2,16,128,1Ki", value_name = "LIST")]
    pub ranks: RankList,
    /// Length of a compute phase of the prediction.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// Confidence level of a mitigation's verdict, over all figures and looks together.
    #[arg(long, default_value_t = 0.99, value_name = "LEVEL")]
    pub confidence: f64,
    /// Write the recordings of all rounds, with and without the mitigation, below this folder.
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Random seed of the order and of the predictions; drawn, and printed, if not given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub allow: TuneAllow,
    #[command(flatten)]
    pub options: AuditArgs,
    /// Folder with the site's own mitigations, and its profiles in the folder `profiles`.
    #[arg(long, value_name = "DIR", default_value = SITE)]
    pub site: PathBuf,
}

/// The default folder of a site's own mitigations.
pub const SITE: &str = "/etc/quell/mitigations.d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_a_percent_sign_and_is_one() {
        assert_eq!((share("5%"), share("2.5 %"), share("100%")), (Ok(0.05), Ok(0.025), Ok(1.0)));
        for bad in ["", "5", "0%", "-1%", "101%", "NaN%", "%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
