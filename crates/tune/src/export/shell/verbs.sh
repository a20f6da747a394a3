# shellcheck shell=sh disable=SC2034,SC2154 # its variables are those of the whole script
# --- files that the kernel changes together --------------------------------------------------------------------------------

# Calls $2 with $spot, the $n-th file of the list $1.
each_file() {
    n=0
    while [ -n "$1" ] && IFS= read -r one; do
        n=$((n + 1))
        spot=$R$one
        "$2"
    done <<END
$1
END
}
each_of_group() { each_file "$group" "$1"; }

# What $spot holds. The kernel's files say nothing of their size, so cmp on the files compares nothing: it reads a pipe.
# shellcheck disable=SC2002 # see above
holds() { cat "$spot" | cmp -s - "$1"; }
group_old() {
    [ -f "$spot" ] || return 0
    [ -f "$STATE/$i.g$n" ] || cat "$spot" >"$STATE/$i.g$n"
}
group_set() {
    [ -f "$spot" ] || return 0
    cat "$spot" >"$STATE/$i.s$n"
}
group_foreign() {
    [ -f "$spot" ] || return 0
    holds "$STATE/$i.g$n" || { [ -f "$STATE/$i.s$n" ] && ! holds "$STATE/$i.s$n" && foreign=1; } || :
}
group_wrong() {
    [ -f "$spot" ] || return 0
    holds "$STATE/$i.g$n" || wrong=1
}
group_put() {
    [ -f "$spot" ] || return 0
    if [ "$(cat "$STATE/$i.g$n")" = 0 ]; then is_zero=1; else is_zero=0; fi
    if [ "$is_zero" = "$zeros" ] && ! holds "$STATE/$i.g$n"; then put_file "$STATE/$i.g$n"; fi
}

# A zero may be refused as long as its partner stands, and is implied once that is set: the others first, until all is right.
write_until_stable() {
    for _ in 1 2 3 4; do
        for zeros in 0 1; do each_of_group group_put; done
        wrong=0
        each_of_group group_wrong
        [ "$wrong" = 1 ] || return 0
    done
    return 1
}

# --- settings that the kernel may change along with those that are written --------------------------------------------------

# Calls $1 with $spot for each of them.
each_dependent() {
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        each_file "$dependents" "$1"
        i=$((i + 1))
    done
}

# One without a value, as of another governor, is left out.
dependent_old() {
    [ -f "$STATE/$i.d$n" ] && return
    if cat "$spot" >"$STATE/part" 2>/dev/null; then
        case $(cat "$STATE/part") in '<'*) ;; *) mv "$STATE/part" "$STATE/$i.d$n" ;; esac
    fi
    rm -f "$STATE/part"
}
dependent_set() { cat "$spot" >"$STATE/$i.e$n" 2>/dev/null || rm -f "$STATE/$i.e$n"; }
# What someone else has set since stays, also if giving the rest back changes it.
dependent_want() {
    if [ ! -f "$STATE/$i.d$n" ] || [ -f "$STATE/$i.t$n" ]; then return; fi
    from=$STATE/$i.d$n
    if [ -f "$spot" ] && [ -f "$STATE/$i.e$n" ] && ! holds "$from" && ! holds "$STATE/$i.e$n"; then from=$spot; fi
    if cat "$from" >"$STATE/part" 2>/dev/null; then mv "$STATE/part" "$STATE/$i.t$n"; fi
}
# As long as its setting is not given back, it would change again.
dependent_is_wrong() {
    [ ! -f "$STATE/$i.old" ] && [ -f "$spot" ] && [ -f "$STATE/$i.t$n" ] && ! holds "$STATE/$i.t$n"
}
dependent_put() { if dependent_is_wrong; then put_file "$STATE/$i.t$n"; fi; }
dependent_wrong() { if dependent_is_wrong; then wrong=$one; fi; }
dependent_done() { rm -f "$STATE/$i.t$n"; }

give_dependents_back() {
    for _ in 1 2 3 4; do
        wrong=
        each_dependent dependent_put
        each_dependent dependent_wrong
        [ -n "$wrong" ] || break
    done
    [ -z "$wrong" ]
}

# --- the folder of originals -----------------------------------------------------------------------------------------------

boot_now() {
    cat "$R/proc/sys/kernel/random/boot_id" 2>/dev/null || echo unknown
}

root_only() {
    [ -n "$R" ] || [ "$(id -u)" = 0 ] || die 'only root can do that'
}

# Whether originals are there. A file from another user is not trusted.
has_state() {
    [ -e "$STATE" ] || [ -L "$STATE" ] || return 1
    [ -n "$(find "$STATE" -prune -type d -user "$(id -u)" ! -perm -020 ! -perm -002)" ] ||
        die "$STATE is not a folder of this user alone: look who made it, and remove it"
    [ "$(cat "$STATE/plan" 2>/dev/null)" = "$PLAN" ] ||
        die "$STATE holds the originals of another plan: undo with $STATE/script, which was applied"
}

begin() {
    [ -d "$R/run" ] || mkdir -m 755 -- "$R/run" 2>/dev/null
    mkdir -m 700 -- "$STATE" || die "$STATE cannot be made"
    boot_now >"$STATE/boot"
    cat -- "$0" >"$STATE/script" 2>/dev/null
    printf '%s\n' "$PLAN" >"$STATE/plan"
}

# What was set in memory went with the boot; files stay.
after_boot() {
    [ "$(boot_now)" = "$(cat "$STATE/boot")" ] && return 1
    case $kind in dropin | unit) return 1 ;; esac
}

# --- the three verbs -------------------------------------------------------------------------------------------------------

# Notes what all places hold before any is written.
save() {
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        if [ ! -f "$STATE/$i.old" ]; then
            if find_place && look "$STATE/part"; then
                each_of_group group_old
                mv "$STATE/part" "$STATE/$i.old"
            elif [ "$may_fail" = 1 ]; then
                say "$label: it is not here, or not alone of its name: left"
            else
                say "$label: it cannot be read; nothing is written" && return 1
            fi
        fi
        i=$((i + 1))
    done
}

write_one() {
    [ -f "$STATE/$i.old" ] || return 0
    why='it is gone'
    if ! { find_place && printf '%s' "$new" >"$STATE/$i.new" && put "$STATE/$i.new"; }; then
        say "$label: $(because)"
        # Half of it may be done.
        if find_place && look "$STATE/now" && ! cmp -s "$STATE/now" "$STATE/$i.old"; then put "$STATE/$i.old"; fi
        [ "$may_fail" = 1 ] && rm -f "$STATE/$i.old" "$STATE/$i.new"
        return
    fi
    look "$STATE/$i.set"
    case $kind in held | unit | dropin) return 0 ;; esac
    same "$STATE/$i.set" "$STATE/$i.new" || say "$label: it took the value, and shows another"
}

apply() {
    root_only
    if has_state; then
        [ "$1" = resume ] || die "it is applied already ($STATE): undo first" 3
    else
        begin
    fi
    trap 'interrupted=1' INT TERM HUP
    each_dependent dependent_old
    save || { undo_all >/dev/null 2>&1; exit 1; }
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        if [ "$interrupted" = 1 ] || ! write_one; then
            say 'what was written before is given back'
            undo_all
            exit 1
        fi
        i=$((i + 1))
    done
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        if [ -f "$STATE/$i.old" ]; then each_of_group group_set; fi
        i=$((i + 1))
    done
    each_dependent dependent_set
}

# Whether a unit is between what it was and $1: it was killed there, or systemd moved it along with a later one that is undone.
half_way() {
    [ "$kind" = unit ] || return 1
    read -r was was_enabled <"$STATE/$i.old"
    read -r is is_enabled <"$1"
    read -r has has_enabled <"$STATE/now"
    case $has in "$was" | "$is") ;; *) return 1 ;; esac
    case $has_enabled in "$was_enabled" | "$is_enabled") ;; *) return 1 ;; esac
}

ours() {
    if [ -f "$STATE/$i.set" ]; then
        cmp -s "$STATE/now" "$STATE/$i.set" || { [ "$unit_undone" = 1 ] && half_way "$STATE/$i.set"; } || return 1
    elif [ -f "$STATE/$i.new" ]; then
        # It was killed between the write and the look.
        same "$STATE/now" "$STATE/$i.new" || half_way "$STATE/$i.new" || return 1
    else
        return 1
    fi
    foreign=0
    each_of_group group_foreign
    [ "$foreign" = 0 ]
}

give_back() {
    if [ -n "$group" ]; then write_until_stable && return 0; else put "$STATE/$i.old"; fi
    find_place && look "$STATE/now" && same "$STATE/now" "$STATE/$i.old"
}

# 0 where nothing is left to do.
undo_one() {
    if after_boot || ! find_place; then return 0; fi
    look "$STATE/now" || { say "$label: it cannot be read"; return 1; }
    if cmp -s "$STATE/now" "$STATE/$i.old"; then return 0; fi
    if ! ours; then
        say "$label: someone else changed it since; it is left alone"
        noted=3
        return 1
    fi
    find_place
    give_back || { say "$label: it does not go back: $(because)"; noted=1; return 1; }
}

# From the end. What cannot be given back stays noted.
undo_writes() {
    worst=0
    i=$COUNT
    while [ "$i" -ge 1 ]; do
        "w$i"
        noted=1
        if [ -f "$STATE/$i.old" ]; then
            if undo_one; then
                rm -f -- "$STATE/$i.old"
                [ "$kind" != unit ] || unit_undone=1
            elif [ "$worst" != 1 ]; then
                worst=$noted
            fi
        fi
        i=$((i - 1))
    done
}

undo_all() {
    unit_undone=0
    if [ "$(boot_now)" = "$(cat "$STATE/boot")" ]; then same_boot=1; else same_boot=0; fi
    [ "$same_boot" = 0 ] || each_dependent dependent_want
    undo_writes
    if [ "$same_boot" = 1 ]; then
        wrong=
        give_dependents_back
        # Some values are refused as long as another setting has not its own.
        if [ "$worst" = 1 ]; then
            undo_writes
            give_dependents_back
        fi
        if [ -n "$wrong" ]; then
            say "$wrong: it does not go back: $(because)"
            worst=1
        fi
        each_dependent dependent_done
    fi
    [ "$worst" != 0 ] || rm -rf -- "$STATE"
    return "$worst"
}

# Without originals, what quell's own files hold still says that they are its own.
undo_files() {
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        if [ "$kind" = dropin ] && [ -f "$R$path" ] && [ "$(cat "$R$path"; echo .)" = "$new." ]; then
            rm -f -- "$R$path" && say "$label: removed"
        fi
        i=$((i + 1))
    done
}

undo() {
    root_only
    if has_state; then
        undo_all || exit
        return
    fi
    say 'nothing is applied since the last boot'
    undo_files
}

status() {
    worst=0
    has_state || { echo 'not applied'; return "$1"; }
    i=1
    while [ "$i" -le "$COUNT" ]; do
        "w$i"
        if [ ! -f "$STATE/$i.old" ]; then
            stands='left'
        elif after_boot || ! find_place || ! look "$STATE/now"; then
            stands='gone' worst=3
        elif [ -f "$STATE/$i.set" ] && cmp -s "$STATE/now" "$STATE/$i.set"; then
            stands='stands'
        elif cmp -s "$STATE/now" "$STATE/$i.old"; then
            stands='as before' worst=3
        else
            stands='changed by others' worst=3
        fi
        printf '%s: %s\n' "$stands" "$label"
        i=$((i + 1))
    done
    return "$worst"
}

# `start`, `stop` and `verify` are what TuneD says; it starts again after a crash, and then the first originals count.
case ${1:-} in
apply) apply once ;;
start) apply resume ;;
undo | stop) undo ;;
status) status 0 ;;
verify) status 1 ;;
*) die "$USAGE" 2 ;;
esac
