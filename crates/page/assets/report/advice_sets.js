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
    return rowTable("advice_effects", `Recommended${where}: ${listed(list(best.ids).map(clean))}.`, effects);
}

/** Leaving CPUs of each node to the system: time of a phase, in percent of the quantum. */
function leaveSection(leave) {
    const choices = records(leave?.choices).filter((choice) => records(choice.scales).length > 0);
    if (choices.length === 0) {
        return null;
    }
    const best = choices.find((choice) => choice.left === leave.best);
    const advised = best
        ? `Leaving ${plural(best.left, "CPU")} is the best${best.on_cpus ? `, with the job on ${cpusCalled(best.on_cpus)}` : ""}.`
        : "Leaving none is the best.";
    return element(
        "div",
        {},
        element("h3", {}, `CPUs of ${count(leave.cpus)} left to the system`),
        paragraph(
            `The same work on as many nodes, with ${plural(leave.ranks_per_node, "rank")} on each where no CPU is left. ${advised}`,
        ),
        ...choices.map(leaveTable),
    );
}

function leaveTable(choice) {
    const from = (ranks) =>
        number(ranks) === null ? "at none of these scales" : `from ${plural(ranks, "rank")} on`;
    const pays = (field) => ({ kind: (row) => (row[field] < row.full_percent ? "pays" : "") });
    return rowTable(
        "advice_leave",
        `${plural(choice.left, "CPU")} left: it pays off ${from(choice.pays_from_ranks)}; with daemons and interrupts moved there, ${from(choice.pays_moved_from_ranks)}. Time of a phase in percent of the quantum; bold where it is quicker.`,
        records(choice.scales),
        { left_percent: pays("left_percent"), left_moved_percent: pays("left_moved_percent") },
    );
}
