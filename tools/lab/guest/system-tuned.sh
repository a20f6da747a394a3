# shellcheck shell=bash
# TuneD's daemon owns settings: quell does not write next to it unless asked, and leaves it as it was.
up tuned
check "TuneD has a profile" until_true tuned-adm profile throughput-performance
check "TuneD's profile holds" until_true tuned-adm verify --ignore-missing
remember
quell tune plan swappiness vm-stat-interval numa-balancing -o /tmp/own.quell
refused "apply next to TuneD" 3 TuneD quell tune apply /tmp/own.quell "${apply_options[@]}"
same "after the refusal"
apply_options+=(--allow-owner)
cycle "next to TuneD, as asked" swappiness vm-stat-interval numa-balancing
check "TuneD's profile holds" tuned-adm verify --ignore-missing
check "export to TuneD" quell tune export tuned /tmp/own.quell -o /etc/tuned
check "TuneD takes the exported profile" tuned-adm profile quell
stat_interval() { [[ $(cat /proc/sys/vm/stat_interval) == "$1" ]]; }
wanted=$(grep -r -h stat_interval /etc/tuned/quell | sed 's/.*=//' | tr -d ' ')
check "TuneD sets what the plan wants ($wanted)" stat_interval "$wanted"
check "back to the first profile" tuned-adm profile throughput-performance
rm -rf /etc/tuned/quell
same "after TuneD's own revert"
