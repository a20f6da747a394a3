#!/bin/sh
# Slurm Epilog: gives back what prolog.sh applied, with the last job that asked for it. Ends with 0, as the prolog does.
set -u

quell=${QUELL:-/usr/bin/quell}
state=${QUELL_SLURM_STATE:-/run/quell-slurm}
job=${SLURM_JOB_ID:-}

case $job in
    '' | *[!0-9]*) exit 0 ;;
esac
[ -e "$state/jobs/$job" ] || exit 0
(
    flock -w 30 9 || exit 0
    rm -f "$state/jobs/$job"
    now=$(date +%s)
    # A job whose epilog never ran is over with its time.
    for other in "$state"/jobs/*; do
        [ -e "$other" ] || continue
        [ "$(cat "$other")" -gt "$now" ] && exit 0
        rm -f "$other"
    done
    [ -e "$state/applied" ] || exit 0
    # Only what the prolog applied: other transactions belong to others.
    read -r _ id <"$state/applied"
    # 3: something is not as it was left; the log says what, and an administrator decides.
    [ -z "$id" ] || "$quell" --quiet tune revert "$id" >/dev/null 9>&-
    rm -f "$state/applied"
) 9>"$state/lock" >>"$state/prolog.log" 2>&1
exit 0
