// Plots of detours over time, and of their durations.

const MOST_DRAWN = 16;
const DRAWN_BY_DEFAULT = 8;

/** The plots of a recording's detours, with a selection of CPUs if there are too many to draw. */
function detourSection(data) {
    const show = record(data.show);
    const lines = records(data.timeline)
        .filter((one) => list(one.steps_us).length > 0)
        .map(withSeconds);
    const densities = records(data.density)
        .filter((one) => list(one.density).length > 1 && list(one.log10_ns).length === 2)
        .map((one) => ({ ...one, log10_ns: evenly(one.log10_ns, one.density.length) }));
    const reason = absence(show, lines, densities);
    if (reason !== null) {
        return section("detours", "Detours", paragraph(reason, "absent"));
    }
    const all = cpusByNoise(
        show,
        [...lines, ...densities].map((one) => one.cpu),
    );
    const drawn = { cpus: all.length > MOST_DRAWN ? all.slice(0, DRAWN_BY_DEFAULT) : all };
    drawn.cpus = [...drawn.cpus].sort((a, b) => a - b);
    const of = (rows) => drawn.cpus.map((cpu) => rows.find((row) => row.cpu === cpu)).filter(Boolean);
    const sources = list(data.timeline_sources).map(clean);
    const over = plotFigure(`${thinning(lines)}${colouring(sources)}`, () => timeSpec(of(lines), drawn.cpus, sources));
    const last = plotFigure(
        "Density of durations, per decade, from the shortest detour to the longest, on logarithmic axes.",
        () =>
            densitySpec(
                of(densities).map((one) => ({
                    name: cpuName(one),
                    style: style(drawn.cpus.indexOf(one.cpu)),
                    log10_ns: one.log10_ns,
                    density: one.density,
                    span: durationSpan(records(show?.cpus).find((cpu) => cpu.cpu === one.cpu)),
                })),
            ),
    );
    const choice = all.length > MOST_DRAWN ? cpuChoice(all, drawn, plots.slice(-2)) : null;
    return element(
        "div",
        {},
        lines.length > 0 ? section("detours", "Detours over time", choice, over) : null,
        densities.length > 0 ? section("durations", "How long detours last", last) : null,
    );
}

/** A CPU's detours with their times, which the page holds as steps from one to the next. */
function withSeconds(line) {
    let us = 0;
    const seconds = line.steps_us.map((step) => (us += step) / 1e6);
    return { ...line, seconds, own: new Set(list(line.own)) };
}

/** `count` values at equal distances from the first to the last. */
function evenly([first, last], count) {
    return Array.from({ length: count }, (_, i) => first + ((last - first) * i) / (count - 1));
}

/** Why there is nothing to draw; null if there is. */
function absence(show, lines, densities) {
    if (lines.length + densities.length > 0) {
        return null;
    }
    if (show && records(show.quanta).length > 0) {
        return "FWQ and FTQ measure whole quanta, so there are no single detours to draw.";
    }
    if (show?.method === "memory") {
        return "The memory method times loads, so there are no detours to draw.";
    }
    if (show?.method === "kernel") {
        return "No probe ran with the kernel recorder, so there are no detours to draw.";
    }
    if (show && records(show.cpus).every((cpu) => !(cpu.detours > 0))) {
        return "No detour was above the threshold.";
    }
    return "This page was made without the detours themselves, so they cannot be drawn.";
}

/** CPUs, the one that lost the most time first. */
function cpusByNoise(show, cpus) {
    const overhead = new Map(records(show?.cpus).map((cpu) => [cpu.cpu, number(cpu.overhead_percent) ?? 0]));
    return [...new Set(cpus)].sort((a, b) => (overhead.get(b) ?? 0) - (overhead.get(a) ?? 0) || a - b);
}

function thinning(lines) {
    const shown = lines.reduce((sum, line) => sum + (number(line.shown) ?? line.seconds.length), 0);
    const total = lines.reduce((sum, line) => sum + (number(line.total) ?? line.seconds.length), 0);
    return shown < total
        ? `Each dot is a detour; ${count(shown)} of ${count(total)} are shown: the longest, and the longest in each slice of time.`
        : `Each dot is a detour; all ${count(total)} are on this page.`;
}

function colouring(sources) {
    return sources.length > 0 ? " Its colour is that of the source that took most of it." : "";
}

/** The selection of CPUs for the plots that follow it. */
function cpuChoice(all, drawn, chosenPlots) {
    const input = element("input", {
        type: "text",
        id: "drawn",
        value: cpuList(drawn.cpus),
        inputmode: "numeric",
        autocomplete: "off",
        spellcheck: "false",
    });
    const answer = element("span", { role: "status" });
    const form = element(
        "form",
        { class: "choice" },
        element("label", { for: "drawn" }, "CPUs drawn"),
        input,
        element("button", { type: "submit" }, "Draw"),
        answer,
    );
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const cpus = parseCpuList(input.value);
        const known = (cpus ?? []).filter((cpu) => all.includes(cpu));
        if (known.length === 0) {
            answer.textContent = "Write CPUs of this recording, as in 0-3,8.";
            return;
        }
        drawn.cpus = known.slice(0, MOST_DRAWN).sort((a, b) => a - b);
        answer.textContent = known.length > MOST_DRAWN ? `The first ${MOST_DRAWN} of them are drawn.` : "";
        chosenPlots.forEach(draw);
    });
    const note = paragraph(
        `The recording holds ${all.length} CPUs. The plots begin with the ${DRAWN_BY_DEFAULT} that lost most time; the tables hold all.`,
    );
    return element("div", {}, note, form);
}

/** All detours of some CPUs, ordered by time. Each is of the series of its source, or of its CPU where sources are not known; those of quell
 * itself are of the last. */
function dotsOf(lines, sources) {
    const seriesOf = (line, index, i) =>
        sources.length > 0 ? Math.min(number(Number(line.sources?.[i])) ?? Infinity, sources.length - 1) : index;
    const last = sources.length > 0 ? sources.length : lines.length;
    const dots = lines.flatMap((line, index) =>
        line.seconds.map((second, i) => ({
            second,
            line,
            log: Math.log10(Math.max(1, line.duration_ns[i])),
            series: line.own.has(i) ? last : seriesOf(line, index, i),
        })),
    );
    const sound = dots.filter((dot) => number(dot.second) !== null && number(dot.log) !== null);
    return sound.sort((a, b) => a.second - b.second);
}

function timeSpec(lines, order, sources) {
    const dots = dotsOf(lines, sources);
    if (dots.length === 0) {
        return "None of these CPUs had a detour above the threshold.";
    }
    const bySource = sources.length > 0;
    const names = [...(bySource ? sources : lines.map(cpuName)), "quell's own"];
    const styles = [
        ...(bySource ? sources.map((_, i) => style(i)) : lines.map((line) => style(order.indexOf(line.cpu)))),
        { colour: "--own", dash: [], shape: "square" },
    ];
    const rows = names.map((_, series) => dots.map((dot) => (dot.series === series ? dot.log : null)));
    const [low, high] = extent(rows);
    const text = (i) => (places) => {
        const dot = dots[places[i + 1]];
        const where = bySource && dot && lines.length > 1 ? `, ${cpuName(dot.line)}` : "";
        return dot ? `${durationOfLog(dot.log)} at ${significant(dot.second, 6)}s${where}` : null;
    };
    const all = names.map((name, i) => ({
        name,
        style: styles[i],
        kind: "dots",
        series: [i + 1],
        text: text(i),
    }));
    const groups = all.filter((_, i) => rows[i].some((value) => value !== null));
    const last = dots.at(-1).second;
    const whose = lines.length === 1 ? cpuName(lines[0]) : plural(lines.length, "CPU");
    return {
        label: `Detours over time of ${whose}, up to ${durationOfLog(high)} long${bySource ? ", by the source that took most of each" : ""}. The table of each CPU has the figures.`,
        data: [dots.map((dot) => dot.second), ...rows],
        x: {
            title: "seconds since the start",
            range: [0, last > 0 ? last * 1.01 : 1],
            text: (value) => significant(value, 6),
        },
        y: { title: "duration", log: 10, range: [low - 0.1, high + 0.15], text: durationOfLog },
        series: styles.map((one) => ({ ...one, kind: "dots" })),
        groups,
        near: true,
    };
}

function extent(rows) {
    let [low, high] = [Infinity, -Infinity];
    rows.forEach((row) =>
        row.forEach((value) => {
            if (value !== null) {
                [low, high] = [Math.min(low, value), Math.max(high, value)];
            }
        }),
    );
    return [low, high];
}

/** The logarithms of the shortest and the longest duration; null if they are not known. */
function durationSpan(summary) {
    return summary?.min_ns > 0 && summary.max_ns > 0
        ? [Math.log10(summary.min_ns), Math.log10(summary.max_ns)]
        : null;
}

/** Densities, each with `name`, `style`, `log10_ns` and `density`, on one grid and logarithmic axes. A curve with a `span` ends there: its
 * smoothing windows extend further, but no detour did. */
function densitySpec(curves) {
    const sound = curves.filter((curve) => list(curve.density).some((value) => value > 0));
    if (sound.length === 0) {
        return "There are no durations to draw.";
    }
    const grid = commonGrid(sound.map((curve) => curve.log10_ns));
    const linear = sound.map((curve) =>
        within(curve.span, grid, resampled(grid, curve.log10_ns, curve.density)),
    );
    const high = Math.log10(Math.max(...linear.map((row) => Math.max(...row))));
    const low = Math.max(high - 5, Math.log10(Math.min(...linear.flat().filter((value) => value > 0))));
    const seen = grid.filter((_, i) => linear.some((row) => row[i] > 0));
    const [left, right] = [seen[0] - 0.1, seen.at(-1) + 0.1];
    // Values below the axis are drawn below its lower end.
    const below = low - 1;
    const rows = linear.map((row) =>
        row.map((value) => (value > 0 ? Math.max(Math.log10(value), below) : below)),
    );
    return {
        label: `Density of durations of ${sound.map((curve) => curve.name).join(", ")}, from ${durationOfLog(left)} to ${durationOfLog(right)}.`,
        data: [grid, ...rows],
        x: { title: "duration", log: 10, range: [left, right], text: durationOfLog },
        y: {
            title: "density per decade",
            log: 10,
            range: [low, high + 0.1],
            text: (value) => significant(10 ** value, 2),
        },
        series: sound.map((curve) => ({ ...curve.style, kind: "line" })),
        groups: sound.map((curve, i) => ({
            name: curve.name,
            style: curve.style,
            kind: "line",
            series: [i + 1],
            text: (places, [, ...ys]) =>
                number(places[0]) === null || ys[i][places[0]] < low
                    ? null
                    : significant(10 ** ys[i][places[0]], 3),
        })),
        at: durationOfLog,
    };
}

/** Values inside a span, and directly next to it so that a single duration is visible; zero outside. */
function within(span, grid, values) {
    const margin = 0.05;
    return values.map((value, i) =>
        span && (grid[i] < span[0] - margin || grid[i] > span[1] + margin) ? 0 : value,
    );
}

/** An even grid that covers all grids, at least as fine as the finest, up to a limit. */
function commonGrid(grids) {
    const low = Math.min(...grids.map((grid) => grid[0]));
    const high = Math.max(...grids.map((grid) => grid.at(-1)));
    const step = Math.min(...grids.map((grid) => (grid.at(-1) - grid[0]) / (grid.length - 1)));
    const steps = Math.min(2000, Math.max(500, Math.round((high - low) / step) || 0));
    return Array.from({ length: steps + 1 }, (_, i) => low + ((high - low) * i) / steps);
}

/** Interpolates values linearly on another grid; zero outside their own grid. */
function resampled(grid, places, values) {
    let at = 0;
    return grid.map((place) => {
        while (at < places.length - 2 && places[at + 1] < place) {
            at += 1;
        }
        const part = (place - places[at]) / (places[at + 1] - places[at]);
        const value = values[at] + part * (values[at + 1] - values[at]);
        return part >= -1e-9 && part <= 1 + 1e-9 && Number.isFinite(value) ? value : 0;
    });
}
