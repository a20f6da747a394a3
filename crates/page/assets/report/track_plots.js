// The plots of an MPI run, after Nataraj et al. (SC 2007, figures 4 to 7).

/** Maximum number of sources with a line of their own; more are indistinguishable. */
const MOST_LINES = 7;
/** Smaller ratios are drawn at this value, because a logarithmic axis has no zero. */
const LEAST_RATIO = 0.01;
/** Shares are cut off here: for a rank that lost almost nothing, they are meaningless and unbounded. */
const MOST_SHARE = 3;
/** Maximum number of ranks whose points are joined by a line. */
const MOST_JOINED = 256;
const ALL = { colour: "--series-7", dash: [], shape: "circle" };

/** The lines of a plot: one for all noise, and one for each of the costliest sources. */
function trackLines(run, values) {
    const sources = drawnSources(run).slice(0, MOST_LINES);
    return [
        { name: "all noise", look: ALL, values: values(list(run.ranks.accumulated), list(run.ranks.local)) },
        ...sources.map((source, n) => ({
            name: clean(source.source),
            look: style(n),
            values: values(source.accumulated, source.local),
        })),
    ];
}

function drawnSources(run) {
    return records(run.sources).filter((source) => list(source.local).length > 0);
}

/** A plot of lines over ranks, or over positions in an order. */
function linesSpec(places, lines, { title, label, text, y, at, shade, ordered }) {
    const marks = places.length <= 48;
    // With many ranks, lines between neighbours would fill the plot.
    const kind = places.length > MOST_JOINED && !ordered ? "dots" : "line";
    const margin = Math.max((places.at(-1) - places[0]) * 0.02, 0.3);
    return {
        label,
        data: [places, ...lines.map((line) => line.values)],
        x: {
            title,
            range: [places[0] - margin, places.at(-1) + margin],
            text: (value) => (Number.isInteger(value) && value >= 0 ? String(value) : ""),
        },
        y: { text, ...y },
        series: lines.map((line) => ({ ...line.look, kind, marks })),
        groups: lines.map((line, n) => ({
            name: line.name,
            style: line.look,
            kind,
            series: [n + 1],
            text: (idxs, data) => {
                const value = data[n + 1][idxs[n + 1]];
                return number(value) === null ? null : (line.text ?? text)(value);
            },
        })),
        at,
        shade,
    };
}

function mostOf(lines) {
    return lines.reduce((most, line) => line.values.reduce((a, b) => Math.max(a, b ?? 0), most), 0);
}

function accumulatedSpec(run) {
    const lines = trackLines(run, (accumulated) => accumulated);
    const most = mostOf(lines);
    if (most <= 0) {
        return "No rank ended later because of noise.";
    }
    return linesSpec(list(run.ranks.rank), lines, {
        title: "rank",
        label: `Accumulated noise by rank, up to ${duration(most)}.`,
        text: duration,
        y: { title: "accumulated noise", range: [0, most * 1.06] },
        at: (rank) => `rank ${rank}`,
    });
}

/** Each line in its own order, the smallest ratio first; ranks that a source never struck have no ratio. */
function ratioSpec(run) {
    const sorted = (accumulated, local) => {
        const ratios = accumulated.flatMap((value, at) => (local[at] > 0 ? [value / local[at]] : []));
        ratios.sort((a, b) => a - b);
        return [...Array(accumulated.length - ratios.length).fill(null), ...ratios];
    };
    const lines = trackLines(run, sorted);
    const most = mostOf(lines);
    const ranks = list(run.ranks.rank);
    if (lines.every((line) => line.values.every((value) => value === null)) || ranks.length < 2) {
        return ranks.length < 2 ? "One rank has no order." : "No rank has local noise.";
    }
    const log = most > 10;
    const scaled = (value) =>
        value === null || !log ? value : Math.log10(Math.max(value, LEAST_RATIO));
    const ratio = (value) => significant(log ? 10 ** value : value, 3);
    lines.forEach((line) => {
        line.values = line.values.map(scaled);
    });
    const low = Math.min(0, ...lines.map((line) => Math.min(...line.values.filter((v) => v !== null))));
    return linesSpec(
        ranks.map((_, at) => at + 1),
        lines,
        {
            title: "ranks, each line in its own order",
            label: `Noise amplification ratio, sorted, up to ${significant(most, 3)}.`,
            text: ratio,
            y: log
                ? { title: "accumulated / local", log: 10, range: [low - 0.05, scaled(most) + 0.1] }
                : { title: "accumulated / local", range: [0, Math.max(most * 1.06, 1.1)] },
            at: (place) => `place ${count(place)} of ${count(ranks.length)}`,
            shade: (u) => ruleAt(u, log ? 0 : 1),
            ordered: true,
        },
    );
}

/** A thin line across the plot. */
function ruleAt(u, value) {
    const y = u.valToPos(value, "y", true);
    const { left, width } = u.bbox;
    u.ctx.save();
    u.ctx.strokeStyle = colour("--quiet");
    u.ctx.lineWidth = devicePixelRatio * sharpness;
    u.ctx.beginPath();
    u.ctx.moveTo(left, y);
    u.ctx.lineTo(left + width, y);
    u.ctx.stroke();
    u.ctx.restore();
}

/** The share of each source in what all noise cost a rank, and the sum of these shares. */
function compositionSpec(run) {
    const all = list(run.ranks.accumulated);
    const share = (values) => values.map((value, at) => (all[at] > 0 ? value / all[at] : null));
    const lines = trackLines(run, share).slice(1);
    const sums = all.map((_, at) =>
        drawnSources(run).reduce((sum, source) => sum + source.accumulated[at], 0),
    );
    lines.unshift({ name: "orthogonal sum", look: ALL, values: share(sums) });
    const most = mostOf(lines);
    if (most <= 0) {
        return "No rank ended later because of noise.";
    }
    return linesSpec(list(run.ranks.rank), lines, {
        title: "rank",
        label: "Share of each source in the accumulated noise of each rank, and the sum of the shares.",
        text: (value) => `${significant(100 * value, 3)} %`,
        y: { title: "share", range: [0, Math.min(Math.max(most, 1) * 1.06, MOST_SHARE)] },
        at: (rank) => `rank ${rank}`,
        shade: (u) => ruleAt(u, 1),
    });
}

/** For each source, the noise that struck each rank: a row of bars, scaled to its own maximum. */
function profileFigure(run) {
    const ranks = list(run.ranks.rank);
    const lanes = drawnSources(run)
        .filter((source) => source.local.some((value) => value > 0))
        .map((source, n) => profileLane(source, ranks, n));
    return element(
        "figure",
        { class: "profile" },
        element(
            "figcaption",
            {},
            "Local noise of each rank, by source: ranks from left to right, each row up to its own largest. Point at a row to read it.",
        ),
        ...lanes,
    );
}

function profileLane(source, ranks, n) {
    const values = source.local;
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    const least = values.reduce((a, b) => Math.min(a, b), most);
    const name = clean(source.source);
    const shown =
        `${name}: from ${duration(least)} (rank ${ranks[values.indexOf(least)]}) ` +
        `to ${duration(most)} (rank ${ranks[values.indexOf(most)]})`;
    const drawing = shapeElement("svg", {
        viewBox: `0 0 ${values.length} 100`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": shown,
    });
    // A gap between bars, if there is room for one.
    const wide = values.length > 200 ? 1 : 0.86;
    const bars = values.map((value, at) => {
        const height = Number(((100 * value) / most).toFixed(1));
        return `M${at} 100v-${height}h${wide}v${height}z`;
    });
    const title = shapeElement("title", {});
    title.append(shown);
    drawing.append(
        title,
        shapeElement("path", { d: bars.join(""), style: `fill: var(--series-${n % MOST_LINES})` }),
    );
    return element(
        "div",
        { class: "lane" },
        element("span", { class: "lane-name" }, name),
        element("span", { class: "lane-room" }, drawing),
        element("span", { class: "lane-value" }, duration(most)),
    );
}
