// The findings of one recording: facts, CPUs, periods, quanta.

const METHODS = {
    detour: "detour (a clock loop that keeps the gaps)",
    fwq: "FWQ (fixed work quanta)",
    ftq: "FTQ (fixed time quanta)",
    memory: "memory (how long loads take)",
    kernel: "kernel (no probe: only what the kernel saw)",
};

const STATES = {
    recording: "recording: it was cut off, or is still being made; this is what was written",
    interrupted: "interrupted: it was ended early by a signal",
    failed: "failed: it was ended early by an error",
    imported: "imported from another tool's file",
};

/** The rows of CPUs, whatever was measured on them. */
function measuredCpus(show) {
    return [...records(show.cpus), ...records(show.quanta), ...records(show.memory)];
}

function facts(show) {
    const started = show.started ?? (number(show.zero_unix_ns) === null ? null : show.zero_unix_ns / 1e6);
    const clock = record(show.clock);
    const watched = Math.max(
        0,
        ...measuredCpus(show).map((cpu) => number(cpu.span_ns) ?? 0),
    );
    const cpus = [...new Set(measuredCpus(show).map((cpu) => cpu.cpu))];
    return pairs("facts", [
        ["Recording", clean(show.name)],
        ["Host", clean(show.host)],
        ["Kernel", clean(show.kernel)],
        ["Processor", clean(show.processor)],
        ["Started", started === null ? null : instant(started)],
        [
            "Watched",
            watched > 0 ? `${duration(watched)}, ${plural(cpus.length, "CPU")} (${cpuList(cpus)})` : null,
        ],
        ["Method", METHODS[show.method] ?? clean(show.method)],
        ["Threshold", duration(show.threshold_ns)],
        ["Clock", clock && clockText(clock)],
        ["State", clean(show.state)],
        ["Note", clean(show.note)],
    ]);
}

function clockText(clock) {
    const parts = [
        clean(clock.name),
        number(clock.ticks_per_second) === null
            ? null
            : `${significant(clock.ticks_per_second / 1e6, 6)} MHz`,
        number(clock.granularity_ns) === null ? null : `steps of ${duration(clock.granularity_ns)}`,
        number(clock.drift_ppm) === null ? null : `drift ${significant(clock.drift_ppm, 2)} ppm`,
    ];
    return parts.filter((part) => part !== null).join(", ");
}

/** The warnings of a recording, as sentences. */
function limitsOfRecording(show) {
    const limits = [];
    if (show.state && show.state !== "complete") {
        limits.push(`State: ${STATES[show.state] ?? clean(show.state)}.`);
    }
    if (show.lost > 0) {
        const cpus = records(show.cpus)
            .filter((cpu) => cpu.lost > 0)
            .map((cpu) => cpu.cpu);
        const where = cpus.length > 0 ? ` on CPU ${cpuList(cpus)}` : "";
        limits.push(
            `${plural(show.lost, "row")} were lost for want of room${where}: the noise was worse than these figures say.`,
        );
    }
    const own = records(show.cpus).filter((cpu) => cpu.own_detours > 0);
    if (own.length > 0) {
        const total = own.reduce((sum, cpu) => sum + cpu.own_detours, 0);
        limits.push(
            `quell's own writing caused ${plural(total, "detour")} on CPU ${cpuList(own.map((cpu) => cpu.cpu))}; they are drawn in grey, and left out of every figure.`,
        );
    }
    return [...limits, ...list(show.sentences).map(clean)];
}

/** The key figures of a recording: `[name, value, note]`. */
function headlineOfRecording(show) {
    const cpus = records(show.cpus);
    if (cpus.length === 0) {
        return headlineOfQuanta(records(show.quanta));
    }
    const total = (field) => cpus.reduce((sum, cpu) => sum + (number(cpu[field]) ?? 0), 0);
    const [observed, lost] = [total("observed_ns"), total("noise_ns")];
    const noisiest = most(cpus, "overhead_percent");
    const longest = most(cpus, "max_ns");
    const on = (cpu) => `on ${cpuName(cpu)}`;
    const [several, rate] = [cpus.length > 1, total("detours") / (observed / 1e9)];
    const worst = `worst: ${cpuName(noisiest)}, ${significant(noisiest.overhead_percent, 3)} %`;
    const tiles = [
        [
            "Longest detour",
            longest.max_ns > 0 ? duration(longest.max_ns) : "none",
            longest.max_ns > 0 ? on(longest) : "",
        ],
    ];
    if (observed > 0) {
        tiles.unshift([
            "Noise overhead",
            `${significant((100 * lost) / observed, 3)} %`,
            several ? worst : on(noisiest),
        ]);
        tiles.push([
            "Detours per second",
            significant(rate, 3),
            several ? "of one CPU, on average" : on(noisiest),
        ]);
    }
    return tiles;
}

function headlineOfQuanta(quanta) {
    if (quanta.length === 0) {
        return [];
    }
    const worst = most(quanta, "overhead_percent");
    const longest = most(quanta, "max_ns");
    return [
        ["Noise overhead", `${significant(worst.overhead_percent, 3)} %`, `of ${cpuName(worst)}, the worst`],
        [
            "Longest quantum",
            duration(longest.max_ns),
            `on ${cpuName(longest)}; the median is ${duration(longest.p50_ns)}`,
        ],
    ];
}

function most(rows, field) {
    return rows.reduce((best, row) =>
        (number(row[field]) ?? -1) > (number(best[field]) ?? -1) ? row : best,
    );
}

/** Columns that describe how well a CPU was recorded, rather than its noise. */
const WATCH = ["core", "package", "numa_node", "span_ns", "resolution_ns", "own_detours", "own_ns", "lost"];

function cpuSection(show) {
    const cpus = records(show.cpus);
    const watch = (one) => WATCH.includes(one.field) || one.field.startsWith("loop.");
    const columns = filled(columnsOf("cpus"), cpus);
    return section(
        "cpus",
        "Each CPU",
        table(
            "Detours of each CPU. P90: the duration that nine of ten detours do not exceed.",
            columns.filter((one) => !watch(one)),
            cpus,
        ),
        table(
            "How well the probe observed each CPU. Resolution: the shortest detour that is distinguishable from the probe's own loop.",
            columns.filter((one) => one.field === "cpu" || watch(one)),
            cpus,
        ),
    );
}

function periodSection(show) {
    const rows = records(show.cpus).flatMap((cpu) =>
        records(cpu.periods).map((period) => ({ ...period, cpu: cpu.cpu, all: cpu.noise_ns })),
    );
    if (rows.length === 0) {
        return section("periods", "Periods found", paragraph("No periodic source stands out."));
    }
    const share = (row) =>
        row.all > 0 && number(row.noise_ns) !== null ? (100 * row.noise_ns) / row.all : null;
    const columns = [
        ...columnsOf("periods", {
            Hz: made((row) => 1e9 / row.period_ns, (hz) => significant(hz, 4)),
            strength: made((row) => 100 * row.strength, (percent) => fixed(percent, 0)),
        }),
        {
            head: "Share of noise %",
            hint: "Of the time that this CPU lost to detours",
            ...made(share, (percent) => fixed(percent, 1)),
        },
    ];
    return section(
        "periods",
        "Periods found",
        table(
            "Evenly spaced detours, found by spectrum. A timer tick is one; a daemon that wakes regularly is another.",
            columns,
            rows,
        ),
    );
}

function quantaSection(show) {
    const quanta = records(show.quanta);
    const meaning =
        show.method === "ftq"
            ? "FTQ: the overhead is work below the fullest quantum / all work that would have fitted."
            : "FWQ: the overhead is time above the fastest quantum / all time.";
    return section("quanta", "Quanta of each CPU", rowTable("quanta", meaning, quanta));
}

function memorySection(show) {
    const rows = records(show.memory);
    if (rows.length === 0) {
        return section("memory", "Loads from memory", paragraph("Too few undisturbed loads to split their time.", "absent"));
    }
    const unknown = rows.every((row) => number(row.kernel_percent) === null)
        ? " What the kernel took is not known: it is within the other parts."
        : "";
    const meaning =
        "Slower is the time of all loads above that of the quietest moments: by work of the kernel and other tasks, " +
        `by a slower core, by others' use of the caches and of memory, and by the rest. By chance is what "memory %" (for the core: "core %") would show where nothing slows memory.${unknown}`;
    return section("memory", "Loads from memory", rowTable("memory", meaning, rows));
}
