// What each source costs at one scale: on the node, its part, its removal, and alone.

function costSection(advice) {
    const sources = records(advice.sources);
    if (sources.length === 0) {
        return null;
    }
    return section(
        "costs",
        "What each source costs",
        paragraph(
            "A source's part is what it took of the slowest ranks' detours; all parts add up to the slowdown. " +
                "Removed is by how much the slowdown falls if the source goes, and alone what it would cost if it were the only noise. " +
                "They differ because noise hides noise: a rank that waits for another one loses nothing by a detour of its own.",
        ),
        ...atScale(advice, "costs-scale", (scale) => [costTable(sources, scale), overlapOf(scale)]),
    );
}

function costTable(sources, scale) {
    const rows = sources
        .map((source) => ({
            name: clean(source.source),
            node: record(source.node) ?? {},
            cost: record(list(source.costs)[scale.at]) ?? {},
        }))
        .sort((a, b) => (b.cost.part_percent ?? 0) - (a.cost.part_percent ?? 0));
    const most = Math.max(...rows.map((row) => number(row.cost.part_percent) ?? 0));
    const node = (head, field, show, hint) => ({
        head,
        hint,
        key: (row) => number(row.node[field]),
        text: (row) => show(row.node[field]),
    });
    const cost = (head, field, hint) => ({
        head,
        hint,
        key: (row) => number(row.cost[field]),
        text: (row) => points(row.cost[field]),
    });
    const between = (head, field) => ({
        head,
        key: (row) => number(list(row.cost[field])[0]),
        text: (row) => pointsBetween(row.cost[field]),
    });
    const columns = [
        { head: "Source", left: true, kind: () => "name", text: (row) => row.name },
        {
            ...cost("Part, points", "part_percent", "All parts add up to the slowdown"),
            text: (row) => withThinBar(points(row.cost.part_percent), row.cost.part_percent, most),
        },
        cost("Removed, points", "gain_percent", "By how much the slowdown falls if it goes"),
        between("95 % interval", "gain_ci95_percent"),
        cost("Alone, %", "alone_percent", "The slowdown if there were no other noise"),
        between("95 % interval", "alone_ci95_percent"),
        node("% of node", "percent", (v) => fixed(v, 4), "Of the time that its CPUs were watched"),
        node("Times", "count", count, "Detours that it had part in"),
        node("Longest", "max_ns", duration),
    ];
    const beyond = scale.supported === false ? ", extrapolated" : "";
    return table(
        `Sources ${atRanks(scale)}${beyond}, where all noise costs ${withInterval(scale.slowdown_percent, scale.ci95_percent)} of ${duration(scale.base_ns)}.`,
        columns,
        rows,
    );
}

/** A value above a thin bar, as long as its share of the most. */
function withThinBar(text, value, most) {
    const share = most > 0 && value > 0 ? (100 * value) / most : 0;
    const bar = element("span", { class: "thin", "aria-hidden": "true" });
    if (share > 0) {
        bar.append(element("i", { style: `width: ${share}%` }));
    }
    return element("span", {}, text, bar);
}

function overlapOf(scale) {
    const overlap = number(scale.overlap_percent);
    if (overlap === null) {
        return null;
    }
    return paragraph(
        overlap < 0
            ? `The removals add up to ${points(-overlap)} points more than the slowdown: some noise is late enough to matter only behind other noise.`
            : `Overlap: ${points(overlap)} points of the slowdown are gained by no single removal; it takes several.`,
        "note",
    );
}
