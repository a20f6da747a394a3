//! The page of all mitigations, made of the catalogue.

use std::collections::BTreeMap;

use quell_node::tune::catalogue::{Catalogue, Category, Held, Knob, Mitigation, Profile, Property};

/// The page as Markdown.
pub fn page(catalogue: &Catalogue, profiles: &[Profile]) -> String {
    let mut text = String::from(
        "# Mitigations\n\nMade from `crates/node/catalogue` by `./x docs`. `quell tune audit` says which of them are on a node, and `quell tune audit ID` tells \
         more of one there. A site adds its own in `/etc/quell/mitigations.d`, in the form of quell's.\n\n",
    );
    text += "## Profiles\n\n";
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
    text += &format!(".\n\n{}\n\n*Mind:* {}\n\n", plain(&one.what), plain(&one.caveat));
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
    for (word, ids) in [("after", &one.after), ("not with", &one.conflicts), ("see also", &one.see_also)] {
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

/// What a knob writes, in a line.
fn touches(knob: &Knob) -> String {
    match knob {
        Knob::File(file) => format!("`{}` → `{}`", file.path, file.want),
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
