// A simulated schedule: which noise delayed it.

const MOST_CULPRITS = 24;

function simulationSections(played) {
    const facts = record(played.culprits);
    if (facts === null) {
        return section(
            "culprits",
            "Who made it late",
            paragraph("The simulation ran without --culprits.", "absent"),
        );
    }
    const rows = records(facts.sources).slice(0, MOST_CULPRITS);
    const most = Math.max(0, ...rows.map((row) => number(row.delay_ns) ?? 0));
    const how = {
        delay_ns: { text: (row) => withThinBar(duration(row.delay_ns), row.delay_ns, most) },
    };
    const caption =
        `${clean(played.program)} on ${count(played.ranks)} ranks: the last ends ${duration(facts.delay_ns)} later for noise on the critical path, ` +
        `which takes ${duration(facts.silent_path_ns)} without it; ${duration(facts.absorbed_ns)} of ${duration(facts.struck_ns)} on all ranks delayed nothing.`;
    return section(
        "culprits",
        "Who made it late",
        rowTable("culprits", caption, rows, how),
        rowTable("hits", "The longest delays on the critical path.", records(facts.worst)),
    );
}
