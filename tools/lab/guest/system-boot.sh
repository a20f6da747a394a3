# shellcheck shell=bash
# Boot options through GRUB, quell's units at boot, and a power cut within apply. Each stage ends with a boot.
stage=$(cat /lab/stage 2> /dev/null || echo 0)
next() {
    echo "$1" > /lab/stage
    sync
}
up multi-user.target
options="nohz-full rcu-nocbs skew-tick"
has_options() { grep -q 'nohz_full=' /proc/cmdline && grep -q 'rcu_nocbs=' /proc/cmdline && grep -q 'skew_tick=1' /proc/cmdline; }
is_active() { systemctl is-active quell-tune@vm-guest && quell tune verify; }
case $stage in
    0)
        check "GRUB's menu" update-grub
        next 1
        say "CUT after the first boot, by QEMU; GRUB boots from now on"
        sleep inf
        ;;
    1)
        check "quell's unit for recovery" systemctl enable quell-recover.service
        cp /proc/cmdline /lab/cmdline
        # On a machine that UEFI has started, the menu has an entry more.
        check "GRUB's menu" update-grub
        remember
        # shellcheck disable=SC2086
        check "plan" quell tune plan $options vm-stat-interval swappiness --persist --cpus 1-3 -o /lab/plan.quell
        check "apply" quell tune apply /lab/plan.quell "${apply_options[@]:?}"
        say "OK staged: $(cat /etc/default/grub.d/90-quell-*.cfg | grep -v '^#' | tr '\n' ' ')"
        check "GRUB's menu" update-grub
        next 2
        systemctl reboot
        sleep inf
        ;;
    2)
        check "the kernel has the staged options" has_options
        say "OK the kernel's options: $(cat /proc/cmdline)"
        check "no tick on the CPUs that compute" grep -qx 1-3 /sys/devices/system/cpu/nohz_full
        check "verify after the boot" quell tune verify
        check "what persists holds" grep -qvx 1 /proc/sys/vm/stat_interval
        check "revert" quell tune revert
        check "GRUB's menu" update-grub
        next 3
        systemctl reboot
        sleep inf
        ;;
    3)
        check "the kernel's options are the first ones" cmp /proc/cmdline /lab/cmdline
        same "after the boot without the options" files
        check "quell-tune@vm-guest starts" systemctl start quell-tune@vm-guest
        check "the profile is applied" is_active
        check "quell-tune@vm-guest stops" systemctl stop quell-tune@vm-guest
        same "after the service" files
        systemctl start quell-tune@vm-guest
        systemctl kill --kill-who=main --signal=KILL quell-tune@vm-guest
        check "what a killed service set is reverted" until_true nothing_applied
        check "systemd starts the service again" until_true is_active
        check "it stops" systemctl stop quell-tune@vm-guest
        systemctl reset-failed
        same "after the killed service" files
        systemctl enable quell-tune@vm-guest
        next 4
        systemctl reboot
        sleep inf
        ;;
    4)
        check "the service is active after the boot" until_true is_active
        systemctl disable --now quell-tune@vm-guest
        same "after the service of the boot" files
        next 5
        QUELL_FAULT_AT=60 quell tune apply /lab/plan.quell "${apply_options[@]:?}"
        say "CUT within apply: $(find /etc -name '90-quell*' | wc -l) drop-ins are there"
        sleep inf
        ;;
    5)
        check "quell-recover.service ran" grep -qx 'Result=success' <(systemctl show quell-recover.service -p Result)
        check "nothing is applied" nothing_applied
        same "after the power cut" files
        ;;
esac
