# shellcheck shell=bash
# irqbalance moves interrupts by itself.
up irqbalance
remember
is_stopped() { ! systemctl is-active irqbalance; }
applied() { check "irqbalance is stopped" is_stopped; }
cycle "irqbalance off, interrupts on CPU 0" irqbalance-off irq-cpu0 --cpus 1-3
check "irqbalance runs again" systemctl is-active irqbalance
banned() { quell tune audit irqbalance-ban | grep -q 'not applied\|to do\|missing'; }
check "the audit asks for banned CPUs" banned
