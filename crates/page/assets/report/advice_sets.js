// Combinations of mitigations, and leaving a CPU of each node to the system.

/** The mitigations that are worth applying together, by scale. */
function bestTable(best) {
    const effects = records(best?.effects);
    if (effects.length === 0) {
        return null;
    }
    const where = best.on_cpus
        ? ` for a job on ${cpusCalled(best.on_cpus)}, which leaves the others to the system`
        : " for a job on all CPUs";
    return rowTable("advice_effects", `The best set${where}: ${listed(list(best.ids).map(clean))}.`, effects);
}

/** Leaving a CPU of each node to the system: time of a phase, in percent of the quantum. */
function leaveTable(leave) {
    const scales = records(leave?.scales);
    if (scales.length === 0) {
        return null;
    }
    const from = (ranks) =>
        number(ranks) === null ? "at none of these scales" : `from ${plural(ranks, "rank")} on`;
    const pays = (field) => ({ kind: (row) => (row[field] < row.full_percent ? "pays" : "") });
    return element(
        "div",
        {},
        element("h3", {}, `One of ${count(leave.cpus)} CPUs left to the system`),
        paragraph(
            `The same work on as many nodes, with one rank fewer per node. It pays off ${from(leave.pays_from_ranks)}; with daemons and interrupts moved to the CPU that is left, it pays off ${from(leave.pays_moved_from_ranks)}.`,
        ),
        rowTable(
            "advice_leave",
            "Time of a phase in percent of the full job's quantum; bold where leaving a CPU is quicker.",
            scales,
            { left_percent: pays("left_percent"), left_moved_percent: pays("left_moved_percent") },
        ),
    );
}
