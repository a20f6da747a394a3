// Noise sources: tables, a bar for each CPU, how much is explained, and what is left.

/** Maximum number of sources with a colour of their own; the rest share one. */
const MOST_COLOURED = 7;
/** Maximum number of CPUs with a bar, until all are asked for. */
const MOST_BARS = 32;

const CLASSES = {
    type1: "Type 1",
    type2: "Type 2",
    interrupt: "interrupt",
    hypervisor: "hypervisor",
    unattributed: "unattributed",
    own: "quell itself",
};

/** The sections of a recording's sources, or the reason why they are not known. */
function sourcesSections(sources) {
    const rows = records(sources.sources);
    if (!Array.isArray(sources.sources)) {
        const why = clean(sources.sources_unknown_because ?? "they were not recorded");
        return section("sources", "Sources", paragraph(`The sources are unknown: ${why}.`, "absent"));
    }
    const explained = record(sources.explained);
    const bars = cpuBars(sources);
    return element(
        "div",
        {},
        ...commandSections(sources),
        section(
            "sources",
            "Sources",
            explained ? explainedList(explained) : null,
            bars,
            rows.length > 0 ? sourceTable(rows) : paragraph("The kernel reported no interval.", "absent"),
            taskTable(records(sources.tasks)),
        ),
        explained ? leftOverSection(record(explained.unattributed)) : null,
    );
}

function limitsOfSources(sources) {
    return list(sources.sentences).map(clean);
}

/** The three figures belong together: a single one misleads. */
function explainedList(explained) {
    const percent = (value) => (number(value) === null ? NOTHING : `${fixed(value, 1)} %`);
    const tile = (name, value, note) =>
        element(
            "div",
            {},
            element("dt", {}, name),
            element("dd", { class: "big" }, value),
            element("dd", { class: "note" }, note),
        );
    return element(
        "div",
        {},
        element(
            "dl",
            { class: "headline explained" },
            tile(
                "Time explained",
                percent(explained.time_percent),
                `of ${duration(explained.detour_ns)}; ${duration(explained.unattributed_ns)} are left over`,
            ),
            tile(
                "Time explained, without tasks",
                percent(explained.time_without_tasks_percent),
                "detours that hold a task left out",
            ),
            tile(
                "Detours explained",
                percent(explained.count_percent),
                `of ${count(explained.detours)}, each by the explained share of its time`,
            ),
        ),
        paragraph(
            `The time of a detour is explained as far as kernel intervals cover it. Both clocks agree within ${duration(explained.tolerance_ns)}, as measured; intervals at other times would cover ${percent(explained.chance_percent)} of the time by chance.`,
        ),
    );
}

/** A bar for each CPU, whose length is its noise, divided by source. */
function cpuBars(sources) {
    const cpus = records(sources.per_cpu).filter((cpu) => partsOf(cpu).length > 0);
    if (cpus.length === 0) {
        return null;
    }
    const detours = cpus.some((cpu) => record(cpu.explained));
    const names = [...new Set(cpus.flatMap((cpu) => partsOf(cpu).map((part) => part.name)))];
    const total = (name) =>
        cpus.reduce((sum, cpu) => sum + (partsOf(cpu).find((part) => part.name === name)?.ns ?? 0), 0);
    const known = names.filter((name) => name !== LEFT).sort((a, b) => total(b) - total(a));
    const coloured = new Map(known.slice(0, MOST_COLOURED).map((name, n) => [name, `series-${n}`]));
    const shade = (name) => (name === LEFT ? "left" : (coloured.get(name) ?? "rest"));
    const share = (cpu) =>
        partsOf(cpu).reduce((sum, part) => sum + part.ns, 0) / Math.max(number(cpu.span_ns) ?? 0, 1);
    const busiest = [...cpus].sort((a, b) => share(b) - share(a));
    const most = share(busiest[0]);
    const draw = (some) =>
        [...some].sort((a, b) => a.cpu - b.cpu).map((cpu) => cpuBar(cpu, share(cpu), most, shade, known));
    const caption = detours
        ? "Who took the time of each CPU's detours, in percent of the time watched. Point at a part to read it."
        : "Who took how much time on each CPU, in percent of the time watched. Point at a part to read it.";
    const keys = [
        ...[...coloured].map(([name, kind]) => [clean(name), kind]),
        ...(known.length > MOST_COLOURED
            ? [[`${plural(known.length - MOST_COLOURED, "other source")}`, "rest"]]
            : []),
        ...(names.includes(LEFT) ? [["unattributed", "left"]] : []),
    ];
    const legend = keys.map(([name, kind]) =>
        element("span", { class: "swatch" }, element("i", { class: `piece ${kind}` }), name),
    );
    const fewer = cpus.length > MOST_BARS ? ` First the ${MOST_BARS} CPUs that lost most.` : "";
    return element(
        "figure",
        { class: "stacks" },
        element("figcaption", {}, caption + fewer),
        element("div", { class: "keys" }, ...legend),
        ...lanes(busiest, MOST_BARS, "CPU", draw),
    );
}

/** The part of a bar for unattributed time. A symbol, because no source can have the same name. */
const LEFT = Symbol("unattributed");

/** Name and ns of each part of a CPU's bar, without quell's own. */
function partsOf(cpu) {
    const left = number(record(cpu.explained)?.unattributed_ns);
    const parts = records(cpu.sources)
        .filter((one) => !one.own)
        .map((one) => ({ name: String(one.source), ns: number(one.in_detours_ns ?? one.total_ns) ?? 0 }));
    return [...parts, ...(left === null ? [] : [{ name: LEFT, ns: left }])].filter((part) => part.ns > 0);
}

function cpuBar(cpu, share, most, shade, order) {
    // The order is the same on all CPUs, so that they can be compared.
    const place = (part) => (part.name === LEFT ? order.length : order.indexOf(part.name));
    const parts = partsOf(cpu).sort((a, b) => place(a) - place(b));
    const all = parts.reduce((sum, part) => sum + part.ns, 0);
    const called = (part) => `${part.name === LEFT ? "unattributed" : clean(part.name)}: ${duration(part.ns)}`;
    const pieces = parts.map((part) =>
        element("i", {
            class: `piece ${shade(part.name)}`,
            style: `width: ${(100 * part.ns) / all}%`,
            title: `${called(part)}, ${significant((100 * part.ns) / all, 3)} %`,
        }),
    );
    const bar = element(
        "span",
        { class: "stack", role: "img", "aria-label": parts.slice(0, MOST_COLOURED + 1).map(called).join(", ") },
        ...pieces,
    );
    bar.style.width = `${most > 0 ? (100 * share) / most : 0}%`;
    return element(
        "div",
        { class: "lane" },
        element("span", { class: "lane-name" }, cpuName(cpu)),
        element("span", { class: "lane-room" }, bar),
        element("span", { class: "lane-value" }, `${significant(100 * share, 3)} %`),
    );
}

function sourceTable(rows) {
    // Only the first, which has the most, so that a row stays on one line.
    const names = (head, field) => ({
        head,
        left: true,
        kind: () => "name",
        text: (row) => {
            const [first, ...others] = records(row[field]);
            return first ? clean(first.name) + (others.length ? ` +${others.length}` : "") : NOTHING;
        },
    });
    const columns = [
        ...columnsOf("sources", {
            source: { head: "Source" },
            class: { text: (row) => CLASSES[row.class] ?? clean(row.class) },
        }),
        names("Ran", "details"),
        names("Caused by", "causes"),
    ];
    return table(
        "What the kernel did on the observed CPUs, whether it caused a detour or not. " +
            "Type 1: short and periodic. Type 2: tasks.",
        filled(columns, rows),
        rows,
    );
}

function taskTable(rows) {
    return rows.length === 0 ? null : rowTable("tasks", "Tasks that ran instead of the program.", rows);
}

/** What is known of detours without an interval. */
const ALONE = {
    all_cpus: "– on all CPUs at once",
    stolen: "– while time was stolen",
    near_known: "– close to known work",
    near_resolution: "– close to the resolution",
    rest: "– the rest",
};

function leftOverSection(left) {
    if (left === null || !(left.total_ns > 0)) {
        return null;
    }
    const rows = [
        { what: "Around known work of the kernel", ...record(left.around_known) },
        { what: "Without any interval", ...record(left.alone) },
        ...records(left.parts).map((part) => ({
            what: ALONE[part.class],
            ...record(part.left),
            by_chance: part.by_chance,
        })),
    ];
    const says = records(left.hypotheses).map((one) => element("li", {}, clean(one.says)));
    return section(
        "unattributed",
        "Unattributed",
        rowTable("left_over", `${duration(left.total_ns)} of the detours' time that nothing explains.`, rows),
        says.length > 0 ? paragraph("Possible causes. These are hypotheses; none is proven:") : null,
        says.length > 0 ? element("ul", {}, ...says) : null,
    );
}

/** The totals of a recorded command and of its threads. */
function commandSections(sources) {
    const command = record(sources.command);
    const threads = records(sources.threads);
    if (command === null) {
        return [];
    }
    const had = number(command.had_percent);
    const taken = {
        head: "Taken mostly by",
        left: true,
        kind: () => "name",
        text: (row) =>
            records(row.sources)
                .slice(0, 3)
                .map((one) => `${clean(one.source)} ${duration(one.total_ns)}`)
                .join(", ") || NOTHING,
    };
    const share = had === null ? "never ran" : `got ${fixed(had, 2)} % of the CPU time available to it`;
    return [
        section(
            "command",
            "The command",
            paragraph(`The command (pid ${clean(command.pid)}, ${plural(command.threads, "thread")}) ${share}.`),
            table("Each thread.", [...columnsOf("threads"), taken], threads),
        ),
    ];
}
