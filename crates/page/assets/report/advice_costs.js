// What each source costs at one scale: on the node, its share, the gain if it is removed, and alone.

function costSection(advice) {
    const sources = records(advice.sources);
    if (sources.length === 0) {
        return null;
    }
    return section(
        "costs",
        "What each source costs",
        paragraph(
            "A source's share is its part of the slowest ranks' detours; all shares add up to the slowdown. " +
                "The gain is the reduction of the slowdown if the source is removed; alone is the slowdown if it were the only noise. " +
                "They differ because delays overlap: a rank that waits for another one loses nothing by its own detour.",
        ),
        ...atScale(advice, "costs-scale", (scale) => [costTable(sources, scale), overlapOf(scale)]),
    );
}

function costTable(sources, scale) {
    const rows = sources
        .map((source) => ({
            source: source.source,
            ...record(source.node),
            ...record(list(source.costs)[scale.at]),
        }))
        .sort((a, b) => (b.part_percent ?? 0) - (a.part_percent ?? 0));
    const most = Math.max(...rows.map((row) => number(row.part_percent) ?? 0));
    const how = {
        gain_percent: {
            key: (row) => gainOrder(row.gain_percent, row.gain_ci95_percent),
            text: (row) => gainOrUnresolved(row.gain_percent, row.gain_ci95_percent),
        },
        part_percent: { text: (row) => withThinBar(points(row.part_percent), row.part_percent, most) },
    };
    const beyond = scale.supported === false ? ", extrapolated" : "";
    return rowTable(
        "advice_sources",
        `Sources ${atRanks(scale)}${beyond}, where all noise costs ${withInterval(scale.slowdown_percent, scale.ci95_percent)} of ${duration(scale.base_ns)}.`,
        rows,
        how,
    );
}

/** Whether a gain is certainly one, or certainly none that counts. */
function isResolved(interval) {
    const NO_GAIN = 0.5;
    const [low, high] = list(interval).map(number);
    return low > 0 || high < NO_GAIN;
}

function gainOrUnresolved(gain, interval) {
    return isResolved(interval) ? points(gain) : "not resolved";
}

/** Gains that are not resolved are sorted below all others. */
function gainOrder(gain, interval) {
    return isResolved(interval) ? number(gain) : -Infinity;
}

/** A value above a thin bar, whose length is the value's fraction of the maximum. */
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
            ? `The removals add up to ${points(-overlap)} points more than the slowdown: some noise costs time only together with other noise.`
            : `Overlap: ${points(overlap)} points of the slowdown are recovered by no single removal, only by several.`,
        "note",
    );
}
