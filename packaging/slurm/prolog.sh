#!/bin/sh
# Slurm Prolog: a node that is quiet while a job asks for it, by `sbatch --constraint=quiet` or `--comment=quiet`.
#
#   slurm.conf:  Prolog=/etc/slurm/prolog.d/*    with this file in that folder, root's and executable; epilog.sh likewise
#
# The first job that asks applies the profile, the last one gives it back. Should the epilog never run, the settings end by themselves
# with the job's time limit; after a crash `quell tune status` tells, and `quell tune revert` gives back.
# A prolog that fails drains its node. Noise is no reason for that: this one writes into its log what went wrong, and ends with 0.
set -u

quell=${QUELL:-/usr/bin/quell}
profile=${QUELL_PROFILE:-hpc-node}
state=${QUELL_SLURM_STATE:-/run/quell-slurm}
job=${SLURM_JOB_ID:-}
log=$state/prolog.log

case "&${SLURM_JOB_CONSTRAINTS:-}&,${SLURM_JOB_COMMENT:-}," in
    *'&quiet&'* | *,quiet,* | *,\'quiet\',* | *,\"quiet\",*) ;;
    *) exit 0 ;;
esac
case $job in
    '' | *[!0-9]*) exit 0 ;;
esac

umask 077
mkdir -p "$state/jobs" || exit 0
(
    flock -w 30 9 || exit 0
    : >"$state/jobs/$job"
    [ -e "$state/applied" ] && exit 0
    # A day, where Slurm (before 22.05) does not say when the job must end.
    seconds=86400
    [ -n "${SLURM_JOB_END_TIME:-}" ] && seconds=$((SLURM_JOB_END_TIME - $(date +%s) + 600))
    [ "$seconds" -gt 0 ] || seconds=86400
    rm -f "$state/plan.json"
    if "$quell" --quiet tune plan --profile "$profile" -o "$state/plan.json" >/dev/null &&
        "$quell" --quiet tune apply "$state/plan.json" --yes --for "${seconds}s" --allow-users >/dev/null; then
        : >"$state/applied"
    else
        echo "job $job: the node stays as it is"
    fi
) 9>"$state/lock" >>"$log" 2>&1
exit 0
