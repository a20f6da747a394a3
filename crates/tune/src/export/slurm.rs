//! Slurm's prolog and epilog: quell itself applies the plan before a job and reverts it afterwards.

use super::shell::about;
use super::{Export, File, comments, left, skipped_section};
use crate::catalogue::{Catalogue, Knob, Property, Risk};
use crate::place::Place;
use crate::plan::{Left, Plan, Write};

/// `prolog.sh`, `epilog.sh` and `quell.plan`, which they apply.
pub fn slurm(source: &Plan) -> Export {
    let (plan, mut left) = for_each_job(source);
    left.extend(too_risky(&plan));
    let (host, kernel) = (source.host.clone(), source.kernel.clone());
    let notes = about(&Plan { host, kernel, ..plan.clone() })
        + &comments([
            "quell.plan names no host and no kernel, so it fits all nodes of this kind. quell compares each value with the plan's before it",
            "writes, and refuses a node with others.",
        ])
        + &skipped_section("Left out, because a prolog runs before every job:", &left)
        + &skipped_section("Left out by the plan:", &plan.left);
    let risk = plan.mitigations.iter().map(|one| one.risk).max().unwrap_or(Risk::Low).min(Risk::Medium);
    let prolog =
        PROLOG.replace("@NOTES@\n", &notes).replace("@RISK@", risk.word()).replace("@UNNAMED@", UNNAMED);
    let epilog = EPILOG
        .replace("@NOTES@\n", &comments(["", &format!("Plan {}.", plan.hash)]))
        .replace("@UNNAMED@", UNNAMED);
    let file = |name: &str, mode, text| File { name: name.into(), mode, text };
    let files = vec![
        file("prolog.sh", 0o755, prolog),
        file("epilog.sh", 0o755, epilog),
        file("quell.plan", 0o644, plan.to_json()),
    ];
    Export { files, left }
}

/// The plan without writes that do not suit a single job: those that wait for a boot, and threads of programs that run now. It is for each
/// node of a kind, whatever its name and the numbers of its interrupts and threads.
fn for_each_job(plan: &Plan) -> (Plan, Vec<Left>) {
    let catalogue = Catalogue::built_in();
    let why = |write: &Write| match &write.place {
        _ if write.staged => Some("takes effect only after a boot, and each epilog would remove it"),
        Place::DropIn { .. } => Some("it is for the next boot, and each epilog would remove it"),
        Place::Thread { property, .. } if is_of_process(&catalogue, write, *property) => {
            Some("it is for a process of one node, which has ended when a job starts")
        }
        _ => None,
    };
    let mut kept = plan.clone();
    let left = plan.writes.iter().filter_map(|write| Some(left(write, why(write)?))).collect();
    kept.writes.retain(|write| why(write).is_none());
    for write in &mut kept.writes {
        // Another node has others, or other numbers.
        write.may_fail |= matches!(write.place, Place::Irq { .. } | Place::Thread { .. });
    }
    kept.host.clear();
    kept.kernel.clear();
    kept.hash = kept.hash_of();
    (kept, left)
}

/// Whether a thread is of a program, not of the kernel: a plan does not say so, but its mitigation does.
fn is_of_process(catalogue: &Catalogue, write: &Write, property: Property) -> bool {
    let process = |knob: &Knob| matches!(knob, Knob::Process(_));
    let knobs = catalogue.get(&write.mitigation).map(|one| one.knob.as_slice()).unwrap_or_default();
    property != Property::Affinity || knobs.iter().any(process)
}

/// The prolog allows at most a medium risk: a plan with a higher one would be refused as a whole.
fn too_risky(plan: &Plan) -> Vec<Left> {
    let risky = plan.mitigations.iter().filter(|one| one.risk > Risk::Medium);
    let why = "its risk is high, and the prolog takes medium at most: quell refuses the whole plan until it is made without this";
    risky.map(|one| Left { mitigation: one.id.clone(), what: one.title.clone(), why: why.into() }).collect()
}

/// A function of both scripts.
const UNNAMED: &str = r#"
# The last open transaction that applied the plan; none if there is none.
unnamed() {
    hash=$(sed -n 's/.*"hash": *"\([0-9a-f]*\)".*/\1/p' "$PLAN" | head -n 1)
    [ -n "$hash" ] || return 0
    "$QUELL" tune status --json 2>/dev/null | tr '{' ',' | tr ',' '\n' | tr -d ' "' | while IFS=: read -r key value; do
        case $key in
        id) one=$value ;;
        stage) stage=$value ;;
        plan) if [ "$value" = "$hash" ] && [ "$stage" != closed ]; then printf '%s\n' "$one"; fi ;;
        esac
    done | tail -n 1
}
"#;

const PROLOG: &str = r#"#!/bin/sh
# Made by `quell tune export slurm`: tunes a node for a job, before its first task. slurmd runs it as root.
#
# slurm.conf, for nodes that one job has to itself (OverSubscribe=EXCLUSIVE, or --exclusive). Where jobs share a node, one job's
# epilog would take back what another still runs with.
#   Prolog=/etc/quell/prolog.sh
#   Epilog=/etc/quell/epilog.sh
#   PrologFlags=Alloc            # at the allocation, not at the first step
# Put quell.plan next to them in /etc/quell, writable for root alone.
#
# It always ends with 0. Slurm drains a node whose prolog fails, and puts its job back into the queue; a node that quell refuses to
# change (exit 3), or that rejected the settings (exit 1: the originals are restored), still computes, with more noise. So that is only logged.
@NOTES@
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
QUELL=${QUELL:-quell}
PLAN=${QUELL_PLAN:-/etc/quell/quell.plan}
STATE=${QUELL_STATE:-/run/quell-slurm}

log() {
    logger -t quell-prolog -p "daemon.$1" -- "job ${SLURM_JOB_ID:-?}: $2"
}
@UNNAMED@
# What a job left whose epilog never ran: a slurmd that was killed, for instance. Only what a prolog applied, never an operator's.
if [ -f "$STATE/transaction" ]; then
    log warning 'the settings of an earlier job are still applied; reverting them now'
    id=
    read -r id <"$STATE/transaction"
    [ -n "$id" ] || id=$(unnamed)
    if [ -n "$id" ]; then
        "$QUELL" tune revert "$id" >/dev/null 2>&1 || log err "quell tune revert ended with $?; see: quell tune status"
    fi
fi
# Empty as long as quell is at it: a prolog that is killed there leaves a transaction without a name, which the plan's hash finds.
umask 077
{ mkdir -p -- "$STATE" && : >"$STATE/transaction"; } || {
    log err "$STATE cannot be written, so the epilog could not revert: the node is left as it is"
    exit 0
}

# The job's own user may have processes here already, so users are allowed; what else quell guards against is not.
printed=$("$QUELL" tune apply "$PLAN" --yes --max-risk @RISK@ --allow-users --json 2>&1)
code=$?
id=$(printf '%s\n' "$printed" | sed -n 's/.*"transaction": *"\([0-9A-Za-z-]*\)".*/\1/p' | head -n 1)
if [ "$code" -eq 0 ] && [ -n "$id" ]; then
    printf '%s\n' "$id" >"$STATE/transaction"
else
    rm -f -- "$STATE/transaction"
fi
case $code in
0) log info "applied $PLAN: ${id:-every setting had its value already}" ;;
3) log warning "quell refuses to tune this node: $printed" ;;
*) log err "quell tune apply ended with $code; see: quell tune status: $printed" ;;
esac
exit 0
"#;

const EPILOG: &str = r#"#!/bin/sh
# Made by `quell tune export slurm`: looks whether the job ran as planned, and reverts the settings of the node. slurmd runs it as root.
#
# It fails, and Slurm drains the node, only if quell cannot restore what it changed: the behaviour of such a node is unknown,
# and the next job's prolog could not be applied. A drift under the job is logged; a setting that someone else changed (exit 3) is
# left to them, and forgotten, so that the next job can be tuned.
@NOTES@
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
QUELL=${QUELL:-quell}
PLAN=${QUELL_PLAN:-/etc/quell/quell.plan}
STATE=${QUELL_STATE:-/run/quell-slurm}

log() {
    logger -t quell-epilog -p "daemon.$1" -- "job ${SLURM_JOB_ID:-?}: $2"
}
@UNNAMED@
# The prolog applied nothing, so what is applied, if anything, is an operator's.
[ -f "$STATE/transaction" ] || exit 0
id=
# Empty if the prolog was killed. Without an id everything would be reverted, also an operator's, so nothing is.
read -r id <"$STATE/transaction"
[ -n "$id" ] || id=$(unnamed)
if [ -z "$id" ]; then
    log warning 'the prolog was killed, and nothing of its plan is applied'
    rm -f -- "$STATE/transaction"
    exit 0
fi

printed=$("$QUELL" tune verify 2>&1) || log warning "some settings did not hold to the end: $printed"

printed=$("$QUELL" tune revert "$id" 2>&1)
code=$?
if [ "$code" -eq 3 ]; then
    log warning "others changed some settings since, which stay as they are: $printed"
    printed=$("$QUELL" tune revert --forget "$id" 2>&1)
    code=$?
fi
if [ "$code" -ne 0 ]; then
    log err "quell tune revert ended with $code; the node is drained: $printed"
    exit 1
fi
rm -f -- "$STATE/transaction"
log info 'reverted'
exit 0
"#;
