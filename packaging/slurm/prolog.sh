#!/bin/sh
# Slurm Prolog: a node that is quiet while a job asks for it, by `sbatch --constraint=quiet` or `--comment=quiet`.
#
#   slurm.conf:  Prolog=/etc/slurm/prolog.d/*    with this file in that folder, root's and executable; epilog.sh likewise
#
# The first job that asks applies the profile, the last one gives it back. Should an epilog never run, the settings end by themselves with
# the job's time limit; after a crash `quell tune status` tells, and `quell tune revert` gives back.
# A prolog that fails drains its node. Noise is no reason for that: this one writes into its log what went wrong, and ends with 0.
set -u

quell=${QUELL:-/usr/bin/quell}
profile=${QUELL_PROFILE:-hpc-node}
risk=${QUELL_MAX_RISK:-medium}
state=${QUELL_SLURM_STATE:-/run/quell-slurm}
job=${SLURM_JOB_ID:-}

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
    now=$(date +%s)
    # A day, where Slurm (before 22.05) does not say when the job must end; some minutes more for its epilog.
    end=${SLURM_JOB_END_TIME:-$((now + 86400))}
    case $end in
        *[!0-9]*) end=$((now + 86400)) ;;
    esac
    end=$((end + 600))
    [ "$end" -gt "$now" ] || exit 0
    echo "$end" >"$state/jobs/$job"
    # Settings that another job has here last as long as that job: a longer one takes them over.
    applied=0 id=
    if [ -e "$state/applied" ]; then
        read -r applied id <"$state/applied"
    fi
    [ "$applied" -ge "$end" ] && exit 0
    # What quell leaves behind to end the settings in time may not hold this lock.
    if [ "$applied" -gt "$now" ] && [ -n "$id" ]; then
        "$quell" --quiet tune revert "$id" >/dev/null 9>&-
    fi
    rm -f "$state/applied" "$state/plan.json"
    # The profile has mitigations of medium risk.
    if "$quell" --quiet tune plan --profile "$profile" -o "$state/plan.json" >/dev/null 9>&- &&
        answer=$("$quell" --quiet tune apply "$state/plan.json" --yes --json --for "$((end - now))s" \
            --max-risk "$risk" --allow-users 9>&-); then
        # The transaction: only this one is given back. It is empty where there was nothing to write.
        id=$(printf '%s\n' "$answer" | sed -n 's/.*"transaction": *"\([^"]*\)".*/\1/p')
        echo "$end $id" >"$state/applied"
    else
        echo "job $job: the node stays as it is"
    fi
) 9>"$state/lock" >>"$state/prolog.log" 2>&1
exit 0
