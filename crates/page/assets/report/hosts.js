// Several hosts: which stand out and why, what each loses, what they cost together.

/** Maximum number of hosts with a bar, until all are asked for. */
const MOST_HOST_BARS = 24;
/** Maximum number of causes that are listed for a host. */
const MOST_CAUSES = 3;

const HOST_FIGURES = { overhead: "noise", worst_cpu: "worst CPU" };

const HOST_WORDS = [
    [
        "Stands out",
        "A host whose noise is far above the median of all hosts that were recorded in the same way: its modified z-score, by the median absolute deviation, exceeds 3.5 (Iglewicz and Hoaglin, 1993).",
    ],
    ["Median node", "The node whose own loss is the median of all: what the fleet would be like without its outliers."],
];

function hostsOf(data) {
    return record(data.hosts);
}

function fleetOf(data) {
    return record(data.fleet);
}

function hostName(row) {
    const [host, name] = [row.host, row.name ?? row.node];
    return host && host !== name ? `${clean(host)} (${clean(name)})` : clean(name);
}

/** The first column of every table of hosts. */
const HOST_COLUMN = { head: "Host", left: true, kind: () => "name", text: hostName };

/** The conclusion about the hosts in a sentence. */
function verdictOfHosts(hosts, fleet) {
    const unlike = records(fleet?.unlike);
    const rows = records(hosts?.hosts);
    const all = number(fleet?.nodes) ?? rows.length;
    if (unlike.length > 0) {
        const [first] = unlike;
        const why = records(first.why)[0];
        const more = unlike.length > 1 ? `; ${plural(unlike.length - 1, "other")} of ${plural(all, "host")} also` : "";
        return paragraph(`${hostName(first)} stands out${why ? `: ${clean(why.says)}` : ""}${more}.`, "lead");
    }
    const marked = rows.filter((row) => list(row.stands_out).length > 0);
    if (marked.length > 0) {
        return paragraph(`${marked.map(hostName).join(", ")}: more noise than the other hosts.`, "lead");
    }
    const enough = fleet || records(hosts?.typical).some((one) => number(one.limit_percent) !== null);
    return paragraph(
        enough
            ? `None of ${plural(all, "host")} stands out.`
            : `${plural(all, "host")}: too few to say which stands out; quell compare says what differs between two.`,
        "lead",
    );
}

/** The middle one of ascending values, or the mean of the two in the middle. */
function median(ascending) {
    const half = Math.floor(ascending.length / 2);
    return ascending.length % 2 === 1 ? ascending[half] : (ascending[half - 1] + ascending[half]) / 2;
}

function headlineOfHosts(hosts, fleet) {
    const known = records(hosts?.hosts).filter((row) => number(row.overhead_percent) !== null);
    const tiles = [];
    if (known.length > 0) {
        const sorted = known.map((row) => row.overhead_percent).sort((a, b) => a - b);
        const noisiest = most(known, "overhead_percent");
        tiles.push(
            [
                "Noise overhead, median",
                `${significant(median(sorted), 3)} %`,
                `of ${plural(known.length, "host")}`,
            ],
            ["Noisiest host", `${significant(noisiest.overhead_percent, 3)} %`, hostName(noisiest)],
        );
    }
    const unlike = records(fleet?.unlike);
    if (fleet) {
        tiles.push(["Outliers", count(unlike.length), `of ${plural(fleet.nodes, "host")}`]);
    }
    const cost = record(fleet?.cost);
    const filling = records(cost?.scales)
        .filter((scale) => scale.ranks <= cost.ranks)
        .at(-1);
    if (filling) {
        tiles.push([
            `Slowdown at ${count(filling.ranks)} ranks`,
            `${significant(filling.mixture_percent, 3)} %`,
            `${significant(filling.without_unlike_percent, 3)} % without the outliers`,
        ]);
    }
    return tiles;
}

function limitsOfHosts(hosts, fleet) {
    const rows = records(hosts?.hosts);
    const cut = rows.filter((row) => !["complete", "imported"].includes(row.state)).map(hostName);
    const lost = rows.filter((row) => row.lost > 0).map((row) => `${hostName(row)} ${count(row.lost)}`);
    const unread = records(hosts?.unread ?? fleet?.unread);
    return [
        ...unread.map((one) => `${clean(one.name)} is left out: ${clean(one.reason)}.`),
        ...(cut.length > 0 ? [`Not complete: ${firstOf(cut)}.`] : []),
        ...(lost.length > 0 ? [`Rows were lost: ${firstOf(lost)}.`] : []),
        ...list(hosts?.sentences).map(clean),
        ...list(fleet?.sentences).map(clean),
    ];
}

function firstOf(names) {
    const more = names.length > 8 ? ` and ${names.length - 8} more` : "";
    return names.slice(0, 8).join(", ") + more;
}

/** All sections of several hosts. */
function hostSections(hosts, fleet) {
    return element(
        "div",
        {},
        fleet && records(fleet.typical).length > 0 ? part("The outliers", () => unlikeSection(fleet)) : null,
        record(fleet?.cost) ? part("The cost", () => fleetCostSection(fleet.cost)) : null,
        hosts ? part("The hosts", () => eachHostSection(hosts)) : null,
        hosts && records(hosts.sources).length > 0 ? part("The sources", () => overHostsSection(hosts)) : null,
        fleet ? part("The typical host", () => typicalSection(fleet)) : null,
    );
}

function unlikeSection(fleet) {
    const rows = records(fleet.unlike);
    const none = `No host of ${count(fleet.nodes)} stands out by any ${fleet.nodes_with_sources > 0 ? "source" : "length of detours"}.`;
    const causes = rows.flatMap((row) =>
        records(row.why)
            .slice(0, MOST_CAUSES)
            .map((why) => ({ ...row, ...why })),
    );
    const columns = [
        HOST_COLUMN,
        { head: "Source", left: true, kind: () => "name", text: (row) => clean(row.source) },
        {
            head: "Lost time %",
            hint: "Share of all lost time that this host causes when all hosts run one job",
            ...made((row) => row.delay_share_percent, (percent) => fixed(percent, 1)),
        },
        { head: "Why", left: true, kind: () => "prose", text: (row) => clean(row.says) },
    ];
    return section(
        "unlike",
        "Which hosts stand out",
        rows.length > 0
            ? table("The worst first; for each host the sources that make it an outlier.", filled(columns, causes), causes)
            : paragraph(none),
    );
}

function fleetCostSection(cost) {
    const scales = records(cost.scales);
    const fewer = records(cost.worst_share)
        .filter((one) => one.nodes <= 100)
        .map((one) => `${plural(one.nodes, "host")}: ${fixed(one.share_percent, 0)} %`);
    const caption = `Slowdown over ranks, one per CPU. Grey: more ranks than these hosts' ${count(cost.ranks)} CPUs, which are then used in turn.`;
    return section(
        "fleet-cost",
        "What they cost together",
        paragraph(
            `Mean slowdown of phases of ${duration(cost.quantum_ns)} that wait for the slowest rank, hosts not synchronised. Median node: ${clean(cost.median_node)}.`,
        ),
        scales.length > 1 ? plotFigure(caption, () => fleetCostSpec(scales, Math.log2(cost.ranks))) : null,
        rowTable("fleet_scales", "The same figures.", scales),
        fewer.length > 0
            ? paragraph(`Part of the loss that goes if the slowest become like the median node: ${fewer.join(", ")}.`)
            : null,
        table(
            "The slowest hosts, when all run one job.",
            [HOST_COLUMN, ...columnsOf("fleet_slowest")],
            records(cost.slowest),
        ),
    );
}

function fleetCostSpec(scales, filled) {
    const kinds = [
        ["as they are", "mixture_percent"],
        ["all as the median node", "median_percent"],
        ["without outliers", "without_unlike_percent"],
    ];
    const values = kinds.map(([, field]) => scales.map((row) => number(row[field])));
    const positive = values.flat().filter((value) => value > 0);
    const least = positive.length > 0 ? Math.min(...positive) : 1;
    const highest = positive.length > 0 ? Math.max(...positive) : 10;
    const logs = values.map((row) => row.map((value) => (value > 0 ? Math.log10(value) : null)));
    const ranks = scales.map((row) => Math.log2(row.ranks));
    return {
        label: `Slowdown over ranks: ${kinds.map(([name], i) => `${name} ${significant(values[i].at(-1), 3)} %`).join(", ")} at ${count(scales.at(-1).ranks)} ranks.`,
        data: [ranks, ...logs],
        x: { title: "ranks", range: [ranks[0], ranks.at(-1)], text: ranksOfLog, log: 2 },
        y: {
            title: "slowdown",
            range: [Math.log10(least) - 0.1, Math.log10(highest) + 0.4],
            text: (log) => `${significant(10 ** log, 3)} %`,
            log: 10,
        },
        series: kinds.map((_, i) => ({ ...style(i), kind: "line", marks: true })),
        groups: kinds.map(([name], i) => ({
            name,
            style: style(i),
            kind: "line",
            series: [i + 1],
            text: (places) => (places[i + 1] === null ? null : `${significant(values[i][places[i + 1]], 3)} %`),
        })),
        at: (place) => `${ranksOfLog(place)} ranks`,
        shade: (u) => shadeBeyond(u, filled, ["more ranks", "than CPUs"]),
    };
}

function eachHostSection(hosts) {
    const rows = records(hosts.hosts);
    const events = (field, show) => made((row) => record(row.events)?.[field], show);
    const columns = [
        HOST_COLUMN,
        { head: "Noise %", ...made((row) => row.overhead_percent, (percent) => fixed(percent, 4)) },
        {
            head: "Worst CPU %",
            hint: "Noise overhead of the CPU with the highest",
            key: (row) => number(record(row.worst_cpu)?.overhead_percent),
            text: (row) =>
                record(row.worst_cpu)
                    ? `${fixed(row.worst_cpu.overhead_percent, 4)} (CPU ${clean(row.worst_cpu.cpu)})`
                    : NOTHING,
        },
        {
            head: "Top source",
            left: true,
            kind: () => "name",
            text: (row) => clean(record(row.top_source)?.source),
        },
        { head: "Per s", hint: "Events per second of one CPU", ...events("rate_per_s", (rate) => fixed(rate, 1)) },
        { head: "p99", ...events("p99_ns", duration) },
        { head: "Longest", ...events("max_ns", duration) },
        { head: "Stands out", left: true, text: standsOut, kind: (row) => (list(row.stands_out).length > 0 ? "higher" : "") },
        { head: "CPUs", text: (row) => clean(row.cpus) },
        { head: "Watched", ...made((row) => row.span_ns, duration) },
        { head: "Method", left: true, text: (row) => clean(row.method) },
    ];
    return section(
        "hosts",
        "Each host",
        hostBars(rows),
        table("A row per recording, the noisiest first.", filled(columns, rows), rows),
    );
}

function standsOut(row) {
    const marks = records(row.stands_out).map((one) => {
        const name = HOST_FIGURES[one.figure] ?? clean(one.figure);
        return number(one.times_median) === null
            ? `${name}, others have none`
            : `${name} ${fixed(one.times_median, 1)} × median`;
    });
    return marks.join(", ") || NOTHING;
}

/** A bar for each of the noisiest hosts. */
function hostBars(rows) {
    const known = rows.filter((row) => row.overhead_percent > 0);
    if (known.length < 2) {
        return null;
    }
    const largest = known[0].overhead_percent;
    const laneOf = (row) => {
        const marked = list(row.stands_out).length > 0;
        const text = `${hostName(row)}: ${significant(row.overhead_percent, 3)} %${marked ? ", stands out" : ""}`;
        const bar = element(
            "span",
            { class: "stack", role: "img", "aria-label": text, title: text },
            element("i", { class: `piece ${marked ? "series-1" : "series-0"}`, style: "width: 100%" }),
        );
        bar.style.width = `${(100 * row.overhead_percent) / largest}%`;
        return element(
            "div",
            { class: "lane named" },
            element("span", { class: "lane-name", title: hostName(row) }, hostName(row)),
            element("span", { class: "lane-room" }, bar),
            element("span", { class: "lane-value" }, `${significant(row.overhead_percent, 3)} %`),
        );
    };
    const key = (name, kind) => element("span", { class: "swatch" }, element("i", { class: `piece ${kind}` }), name);
    const marked = known.some((row) => list(row.stands_out).length > 0);
    const fewer = known.length > MOST_HOST_BARS ? ` First the ${MOST_HOST_BARS} noisiest.` : "";
    return element(
        "figure",
        { class: "stacks" },
        element("figcaption", {}, `Noise overhead of each host, over all of its CPUs.${fewer}`),
        marked ? element("div", { class: "keys" }, key("stands out", "series-1"), key("others", "series-0")) : null,
        ...lanes(known, MOST_HOST_BARS, "host", (some) => some.map(laneOf)),
    );
}

function overHostsSection(hosts) {
    return section(
        "over-hosts",
        "Sources over all hosts",
        rowTable("over_hosts", "What the kernel did on the observed CPUs of all hosts, most time first.", records(hosts.sources)),
    );
}

function typicalSection(fleet) {
    const sources = records(fleet.typical).filter((one) => one.ns_per_s > 0);
    const differences = records(fleet.differences);
    const columns = [
        { head: "What", left: true, text: (row) => clean(row.what) },
        { head: "On most", left: true, text: (row) => clean(row.usual) },
        { head: "On these", left: true, text: (row) => clean(row.value) },
        { head: "Hosts", ...made((row) => row.nodes, count) },
        {
            head: "Names",
            left: true,
            text: (row) => list(row.names).map(clean).join(", ") + (row.nodes > list(row.names).length ? ", ..." : ""),
        },
    ];
    if (sources.length === 0 && differences.length === 0) {
        return null;
    }
    return section(
        "typical",
        "The typical host",
        sources.length > 0 ? rowTable("fleet_typical", "Medians of all hosts, by source.", sources) : null,
        differences.length > 0 ? table("In what some hosts differ from most. These are no faults.", columns, differences) : null,
    );
}
