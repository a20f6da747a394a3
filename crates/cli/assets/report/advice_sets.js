// Mitigations together, and a CPU of each node left to the system.

/** What is worth it together, scale by scale. */
function bestTable(best) {
    const effects = records(best?.effects);
    if (effects.length === 0) {
        return null;
    }
    const where = best.on_cpus
        ? ` for a job on ${cpusCalled(best.on_cpus)}, which leaves the others to the system`
        : " for a job on all CPUs";
    const between = (head, field) => ({
        head,
        key: (row) => number(list(row[field])[0]),
        text: (row) => pointsBetween(row[field]),
    });
    const columns = [
        column("Ranks", "ranks", count),
        column("Now, %", "before_percent", points),
        column("Left, %", "after_percent", points),
        between("95 % interval", "after_ci95_percent"),
        column("Gain, points", "gain_percent", points),
        between("95 % interval", "gain_ci95_percent"),
    ];
    return table(`The best set${where}: ${listed(list(best.ids).map(clean))}.`, columns, effects);
}

/** A CPU of each node left to the system: time of a phase in percent of the quantum. */
function leaveTable(leave) {
    const scales = records(leave?.scales);
    if (scales.length === 0) {
        return null;
    }
    const from = (ranks) =>
        number(ranks) === null ? "at none of these scales" : `from ${plural(ranks, "rank")} on`;
    const time = (head, field, hint) => ({
        ...column(head, field, (value) => fixed(value, 1), hint),
        kind: (row) => (row[field] < row.full_percent ? "pays" : ""),
    });
    const columns = [
        column("Ranks", "ranks", count),
        column("Ranks, one CPU left", "ranks_left", count),
        time("Full nodes, time %", "full_percent", "100 and the slowdown"),
        time("One CPU left, time %", "left_percent", "Noise stays where it is"),
        time(
            "One left, daemons on it, time %",
            "left_moved_percent",
            "Tasks and devices' interrupts go to it",
        ),
    ];
    return element(
        "div",
        {},
        element("h3", {}, `One of ${count(leave.cpus)} CPUs left to the system`),
        paragraph(
            `The same work on as many nodes, with one rank fewer on each. It pays ${from(leave.pays_from_ranks)}; with daemons and interrupts moved to the CPU that is left, it pays ${from(leave.pays_moved_from_ranks)}.`,
        ),
        table(
            "Time of a phase in percent of the full job's quantum; bold where leaving a CPU is quicker.",
            columns,
            scales,
        ),
    );
}
