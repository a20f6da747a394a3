//! The reference page of mitigations, generated from the catalogue.

use std::collections::BTreeMap;

use quell_tune::catalogue::{Catalogue, Category, Held, Knob, Mitigation, Property};
use quell_tune::profile::Profile;

/// How a site writes its own mitigations.
const SITE: &str = r#"## A file of one's own

A file `ID.toml` that only root may write, in a folder that only root may write. The kinds of knob are `file`, `irq`, `kernel-thread`, `process`, `unit`,
`hold`, `cpuset`, `boot`, `drop-in` and `by-hand`; their fields are described in `crates/tune/src/catalogue.rs`, and every entry below is an example in `crates/tune/catalogue`.

```toml
id = "site-thp"                          # the file's name
title = "Huge pages as our codes want them"
category = "memory"
what = "Our codes ask for huge pages by themselves."
caveat = "Codes of guests do not."
risk = "low"                             # low, medium or high: `apply` takes only low without --max-risk
kernel = "any"
provenance = ["our measurements of 2026"]
noise = ['task:^khugepaged$', 'fault']   # sources as quell names them, each with a regular expression
after = ["smt-off"]                      # what comes first in a plan with both

[[knob]]
kind = "file"
path = "/sys/kernel/mm/transparent_hugepage/enabled"
want = "madvise"                         # ${compute}, ${housekeeping}, ${housekeeping:mask} … stand for this node's CPUs

[[knob]]
kind = "kernel-thread"
matches = '^khugepaged$'
want = "housekeeping"
```

"#;

/// A profile of a site, as an example.
const SITE_PROFILE: &str = r#"title = "Our compute nodes"
what = "As hpc-node, but cron stays, and hosts with GPUs keep their links awake."
include = ["hpc-node"]
without = ["svc-cron"]
mitigations = ["swappiness"]
values = { vm-stat-interval = "120" }
# Of each list, the first that the node has.
first-of = [["cpuset-isolated", "cpuset-v1-shield"]]

[[when]]
# Other facts: arch, kernel-before, cpus-from, numa, guest.
is = { host = "gpu*", smt = true, kernel-from = "6.1" }
mitigations = ["pcie-aspm"]
"#;

/// The page as Markdown.
pub fn page(catalogue: &Catalogue, profiles: &[Profile]) -> String {
    let mut text = String::from(
        "# Mitigations\n\nMade from `crates/tune/catalogue` by `./x docs`. `quell tune audit` shows which \
         of them are applied on a node, and `quell tune audit ID` shows the details of one. A site adds its own in `/etc/quell/mitigations.d`, and may replace one of quell's by its id.\n\n",
    );
    text += SITE;
    text += "## Profiles\n\n";
    text += "`quell tune plan --profile NAME` plans all mitigations of one. A site's own stand in `/etc/quell/mitigations.d/profiles/NAME.toml`:\n\n";
    text += "```toml\n";
    text += SITE_PROFILE;
    text += "```\n\n";
    for profile in profiles {
        let ids: Vec<String> = profile.mitigations.iter().map(|id| format!("[{id}](#{id})")).collect();
        text += &format!("**{}**: {}. {}\n{}\n\n", profile.name, profile.title, profile.what, ids.join(", "));
    }
    let mut by: BTreeMap<Category, Vec<&Mitigation>> = BTreeMap::new();
    for one in catalogue.iter() {
        by.entry(one.category).or_default().push(one);
    }
    for (category, all) in by {
        text += &format!("## {}\n\n", heading(category));
        for one in all {
            text += &entry(one);
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn heading(category: Category) -> String {
    let word = format!("{category:?}");
    if matches!(category, Category::Irq | Category::Rcu | Category::Smt) { word.to_uppercase() } else { word }
}

fn entry(one: &Mitigation) -> String {
    let mut text = format!("### {}\n\n**{}.** Risk {}", one.id, one.title, one.risk.word());
    text += &format!("; kernel {}", one.kernel);
    if !one.arch.is_empty() {
        text += &format!("; {} only", one.arch.join(", "));
    }
    if one.reboot {
        text += "; from the next boot on";
    }
    text += &format!(".\n\n{}\n\n*Caveat:* {}\n\n", plain(&one.what), plain(&one.caveat));
    if let Some(gone) = &one.gone {
        text += &format!("*Gone:* {}\n\n", plain(gone));
    }
    if let Some(id) = &one.successor {
        text += &format!("*Today:* [{id}](#{id})\n\n");
    }
    let patterns = one.noise.iter().map(|pattern| format!("`{pattern}`"));
    let noise: Vec<String> = patterns.chain(one.noise_in_words.iter().cloned()).collect();
    text += &format!("- takes away: {}\n", noise.join(", "));
    text.extend(one.knob.iter().map(|knob| format!("- {}\n", touches(knob))));
    let links = |ids: &[String]| ids.iter().map(|id| format!("[{id}](#{id})")).collect::<Vec<_>>().join(", ");
    for (word, ids) in [
        ("after", &one.after),
        ("undone without one of", &one.undone_without),
        ("not with", &one.conflicts),
        ("see also", &one.see_also),
    ] {
        if !ids.is_empty() {
            text += &format!("- {word}: {}\n", links(ids));
        }
    }
    if let Some(row) = &one.ibm {
        text += &format!("- IBM's row: {row}\n");
    }
    text + &format!("- from: {}\n\n", one.provenance.join("; "))
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a knob writes, in one line.
fn touches(knob: &Knob) -> String {
    match knob {
        Knob::File(file) => {
            let dependents: Vec<String> = file.dependents.iter().map(|path| format!("`{path}`")).collect();
            let along = match dependents.is_empty() {
                true => String::new(),
                false => {
                    format!(
                        "; the kernel may change these too, and quell restores them: {}",
                        dependents.join(", ")
                    )
                }
            };
            format!("`{}` → `{}`{along}", file.path, file.want)
        }
        Knob::Irq(irq) => format!("interrupts `{}` → {} CPUs", irq.matches, irq.want.word()),
        Knob::KernelThread(threads) => {
            format!("kernel threads `{}` → {} CPUs", threads.matches, threads.want.word())
        }
        Knob::Process(process) => {
            let property = match process.what {
                Property::Affinity => "affinity",
                Property::Policy => "scheduling policy",
                Property::TimerSlack => "timer slack",
            };
            format!("{property} of a process → `{}`", process.want)
        }
        Knob::Unit(unit) => format!("unit `{}` → stopped", unit.name),
        Knob::Hold(hold) => match hold.what {
            Held::CpuDmaLatency => format!("`/dev/cpu_dma_latency` held at `{}`", hold.want),
            Held::TimestampSocket => "a socket with time stamps, held".into(),
        },
        Knob::Cpuset(_) => "a cpuset of quell's".into(),
        Knob::Boot(boot) => {
            let want = boot.want.to_string();
            let option =
                if want.is_empty() { boot.option.clone() } else { format!("{}={want}", boot.option) };
            format!("kernel command line: `{option}`")
        }
        Knob::DropIn(file) => format!("`{}`", file.path),
        Knob::ByHand(hand) => format!("by hand: {}", plain(&hand.r#do)),
    }
}
