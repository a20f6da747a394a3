// Two recordings, before (a) and after (b).

const VERDICTS = {
    lower: "↓ lower",
    higher: "↑ higher",
    "no measurable difference": "no measurable difference",
};

function signed(value, show) {
    return value < 0 ? `−${show(-value)}` : show(value);
}

/** The rows of a table of changes, each figure in the format that the program gives. */
function changeRows(changes, more = {}) {
    return list(described.changes).flatMap((one) => {
        const change = record(record(changes)?.[one.field]);
        const show = (value) => signed(value, (size) => numberText(one, size));
        return change ? [{ ...change, ...more, field: one.field, name: capital(one.title), unit: one.unit, show }] : [];
    });
}

function changeColumns() {
    const value = (head, field) => ({
        head,
        key: (row) => number(row[field]),
        text: (row) => row.show(row[field]),
    });
    return [
        { head: "Figure", left: true, text: (row) => row.name },
        value("a", "a"),
        value("b", "b"),
        value("b − a", "difference"),
        {
            head: "95 % interval of b − a",
            key: (row) => number(row.low),
            text: (row) =>
                number(row.low) === null ? NOTHING : `${row.show(row.low)} … ${row.show(row.high)}`,
        },
        {
            head: "Change %",
            key: percent,
            text: (row) => (percent(row) === null ? NOTHING : signed(percent(row), (v) => fixed(v, 1))),
        },
        {
            head: "Verdict",
            left: true,
            text: (row) => VERDICTS[row.verdict] ?? clean(row.verdict),
            kind: (row) => (row.verdict in VERDICTS ? row.verdict.split(" ")[0] : ""),
        },
    ];
}

function percent(row) {
    return row.a > 0 && number(row.difference) !== null ? (100 * row.difference) / row.a : null;
}

function headlineOfComparison(compare) {
    const rows = changeRows(compare.changes);
    return [
        ["overhead_percent", "Noise overhead, %"],
        ["rate_per_s", "Detours per second"],
        ["p99_ns", "99 % duration"],
        ["max_ns", "Longest detour"],
    ].flatMap(([field, name]) => {
        const row = rows.find((one) => one.field === field);
        return row
            ? [[name, `${brief(row, row.a)} → ${brief(row, row.b)}`, VERDICTS[row.verdict] ?? clean(row.verdict)]]
            : [];
    });
}

/** A figure with fewer digits. */
function brief(row, value) {
    return row.unit === "time" ? duration(value) : significant(value, 3);
}

function limitsOfComparison(compare) {
    const sides = [
        ["a", record(compare.a)],
        ["b", record(compare.b)],
    ].filter(([, side]) => side);
    const limits = sides
        .filter(([, side]) => detoursOf(side) === 0)
        .map(([letter]) => `${letter} holds no detours, so its durations cannot be compared.`);
    const cpus = sides.map(([, side]) => (Array.isArray(side.cpus) ? cpuList(side.cpus) : null));
    if (cpus.length === 2 && cpus[0] !== cpus[1] && cpus[0] !== null) {
        limits.push(`The two recordings watched different CPUs: a ${cpus[0]}, b ${cpus[1]}.`);
    }
    if (record(record(compare.changes)?.max_ns)) {
        limits.push(
            "The interval of the longest detour is only a hint: no resampling can show a longer one than those that happened.",
        );
    }
    return [...limits, ...list(compare.sentences).map(clean)];
}

function detoursOf(side) {
    return number(record(side.detours)?.count ?? side.detours);
}

function comparisonSections(compare) {
    const densities = record(compare.densities);
    const names = ["a", "b"].map((letter) => `${letter}: ${clean(record(compare[letter])?.name)}`);
    const overlay = densities
        ? plotFigure(
              "Density of durations, per decade, from the shortest detour to the longest, on logarithmic axes; both with one window.",
              () =>
                  densitySpec(
                      ["a", "b"].map((letter, i) => ({
                          name: names[i],
                          style: style(i),
                          log10_ns: list(densities.log10_ns),
                          density: list(densities[letter]),
                          span: durationSpan(record(record(compare[letter])?.detours)),
                      })),
                  ),
          )
        : paragraph(
              "One of the two has no detours, so there are no densities to compare.",
              "absent",
          );
    const rows = changeRows(compare.changes);
    return element(
        "div",
        {},
        section("sides", "Before and after", sideTable(compare), distances(compare)),
        sourceChanges(record(compare.by_source)),
        section(
            "changes",
            "What changed",
            rows.length > 0
                ? table(changesCaption(compare), changeColumns(), rows)
                : paragraph("There are no figures to compare.", "absent"),
            cpuChanges(records(compare.cpus)),
        ),
        section("both", "How long detours last", overlay),
    );
}

/** The sources that changed, the one with the greatest change of cost first. */
function sourceChanges(found) {
    if (!found) {
        return null;
    }
    const rows = records(found.changes);
    const slow = records(found.slow_cpus).map((one) =>
        paragraph(
            `CPU ${clean(one.cpu)} runs slower after: a turn of the probe's loop takes ${duration(one.b_loop_ns)}, ${duration(one.a_loop_ns)} before.`,
        ),
    );
    const caption = `Sources that changed by more than chance. Cost: alone, on ${plural(found.ranks, "rank")}, phases of 1 ms.`;
    return section(
        "by-source",
        "Which source changed",
        rows.length > 0
            ? table(caption, columnsOf("source-changes", { cpus: { text: (row) => cpuList(list(row.cpus)) } }), rows)
            : paragraph(`None of ${plural(found.compared, "source")} changed by more than chance.`, "absent"),
        ...slow,
    );
}

function changesCaption(compare) {
    const made =
        number(compare.replicates) === null
            ? ""
            : ` (${plural(compare.replicates, "resampling")}, seed ${clean(compare.seed)})`;
    return `All CPUs together. A change counts as lower or higher only if its 95 % confidence interval${made} does not include zero.`;
}

function sideTable(compare) {
    const rows = ["a", "b"].flatMap((letter) =>
        record(compare[letter]) ? [{ letter, ...compare[letter] }] : [],
    );
    const columns = [
        { head: "Side", left: true, text: (row) => row.letter },
        ...columnsOf("sides", { cpus: { text: (row) => cpuList(list(row.cpus)) } }),
    ];
    return table("The two recordings: a before, b after.", filled(columns, rows), rows);
}

function distances(compare) {
    return pairs("facts", [
        ["KL divergence, b from a", unit(compare.kl_nats, "nats")],
        ["KL divergence, a from b", unit(compare.kl_reverse_nats, "nats")],
        ["Wasserstein distance", duration(compare.wasserstein_ns)],
    ]);
}

function unit(value, name) {
    return number(value) === null ? NOTHING : `${significant(value, 4)} ${name}`;
}

/** The same figures by CPU, collapsed if there are many. */
function cpuChanges(cpus) {
    if (cpus.length < 2) {
        return null;
    }
    const rows = cpus.flatMap((cpu) => changeRows(cpu.changes, { cpu: cpu.cpu }));
    const details = element(
        "details",
        {},
        element("summary", {}, `Each of the ${cpus.length} CPUs that both observed`),
        table("Changes of each CPU", [{ head: "CPU", text: (row) => clean(row.cpu) }, ...changeColumns()], rows),
    );
    details.open = cpus.length <= 4;
    return details;
}
