// What the noise costs at scale.

const SYNC_MODES = {
    none: "each node's noise on its own",
    start: "all nodes start at the same place of the trace, then drift apart",
    phase: "all nodes at the same place of the trace in every phase",
};

/** The prediction documents; the page may hold several, one or none. */
function predictions(data) {
    const all = Array.isArray(data.predict) ? data.predict : [data.predict];
    return records(all).filter((one) => pointsOf(one).length > 0);
}

function pointsOf(prediction) {
    return records(prediction.points).filter(
        (point) => point.ranks > 0 && number(point.slowdown_percent) !== null,
    );
}

/** A name for each curve: the settings that differ between them. */
function curveNames(curves) {
    const differ = (field) => new Set(curves.map((curve) => JSON.stringify(curve[field] ?? null))).size > 1;
    const noise = (curve) => records(curve.noise).map((one) => clean(one.name)).join(", ");
    const oneNoise = new Set(curves.map(noise)).size === 1;
    return curves.map((curve) =>
        [
            oneNoise ? null : noise(curve),
            differ("what_if") ? list(curve.what_if).map(clean).join("; ") || "as it is" : null,
            `sync ${clean(curve.sync)}`,
            differ("op") ? clean(curve.op) : null,
            differ("quantum_ns") ? `quantum ${duration(curve.quantum_ns)}` : null,
            differ("seed") ? `seed ${clean(curve.seed)}` : null,
        ]
            .filter(Boolean)
            .join(", "),
    );
}

function limitsOfPredictions(curves) {
    const names = curveNames(curves);
    const shown = new Map();
    curves.forEach((curve, i) =>
        list(curve.sentences).forEach((sentence) => {
            shown.set(clean(sentence), [...(shown.get(clean(sentence)) ?? []), names[i]]);
        }),
    );
    return [...shown].map(([sentence, by]) =>
        by.length === curves.length
            ? `Prediction: ${sentence}`
            : `Prediction, ${by.join(" and ")}: ${sentence}`,
    );
}

/** The slowdown at 2,048 ranks, and at the largest supported number of ranks. */
function headlineOfPrediction(curve) {
    const points = pointsOf(curve);
    const usual = points.find((point) => point.ranks === 2048);
    const supported = points
        .filter((point) => point.supported !== false)
        .sort((a, b) => a.ranks - b.ranks)
        .at(-1);
    const chosen = [...new Set([usual, supported])].filter(Boolean);
    return chosen
        .sort((a, b) => a.ranks - b.ranks)
        .map((point) => [
            `Slowdown at ${count(point.ranks)} ranks`,
            `${significant(point.slowdown_percent, 3)} %`,
            `${pointNote(point, point === supported)}phases of ${duration(curve.quantum_ns)}, sync ${clean(curve.sync)}`,
        ]);
}

function pointNote(point, most) {
    const limit =
        point.supported === false ? "extrapolated; " : most ? "the most ranks that the trace supports; " : "";
    const [low, high] = list(point.ci95_percent);
    const interval =
        intervalText(point) === NOTHING ? "" : `95 %: ${significant(low, 3)} – ${significant(high, 3)} %; `;
    return limit + interval;
}

function intervalText(point) {
    const [low, high] = list(point.ci95_percent);
    return number(low) === null || number(high) === null || low === high
        ? NOTHING
        : `${fixed(low, 2)} – ${fixed(high, 2)}`;
}

function predictionSection(curves) {
    const names = curveNames(curves);
    const caption =
        "Mean slowdown over ranks, with its 95 % confidence interval. Dashes and hollow marks: extrapolated, beyond what the trace supports.";
    const single = curves.every((curve) => pointsOf(curve).length < 2);
    return section(
        "scale",
        "What it costs at scale",
        ...settings(curves, names),
        single ? null : plotFigure(caption, () => scalingSpec(curves, names)),
        ...curves.map((curve, i) =>
            i === 0 ? pointTable(curve, names[i]) : folded(pointTable(curve, names[i]), names[i]),
        ),
    );
}

function folded(shown, name) {
    return element("details", {}, element("summary", {}, `The same figures, ${name}`), shown);
}

/** The settings of the simulation, listed once if the curves agree. */
function settings(curves, names) {
    const sentences = [...new Set(curves.map(sentence))];
    const modes = curves.map((curve, i) => {
        const own = sentences.length > 1 ? ` ${sentence(curve)}` : "";
        return element(
            "li",
            {},
            `${names[i]}${SYNC_MODES[curve.sync] ? `: ${SYNC_MODES[curve.sync]}` : ""}.${own}`,
        );
    });
    return [sentences.length > 1 ? null : paragraph(sentences[0]), element("ul", {}, ...modes)];
}

function sentence(curve) {
    const end =
        curve.op === "max" || !curve.op
            ? "all ranks wait for the slowest"
            : `each phase ends with ${clean(curve.op)}`;
    const supported =
        number(curve.supported_ranks) === null
            ? ""
            : ` The trace speaks for up to ${plural(curve.supported_ranks, "rank")}.`;
    return (
        `Phases of ${duration(curve.quantum_ns)}, after which ${end}; ` +
        `${count(curve.phases)} of them simulated for each number of ranks, seed ${clean(curve.seed)}.${supported}`
    );
}

function pointTable(curve, name) {
    const how = {
        ci95_percent: { text: intervalText },
        supported: { kind: (point) => (point.supported === false ? "beyond" : "") },
    };
    return rowTable("predict", `Predicted slowdown, ${name}`, pointsOf(curve), how);
}

function scalingSpec(curves, names) {
    const places = [
        ...new Set(curves.flatMap((curve) => pointsOf(curve).map((point) => Math.log2(point.ranks)))),
    ].sort((a, b) => a - b);
    const parts = curves.map((curve, i) => curveParts(curve, places, style(i), 4 * i));
    const values = parts.flatMap((part) => part.rows);
    const [low, high] = extent(values);
    const limits = curves.map((curve) => number(curve.supported_ranks)).filter((ranks) => ranks > 0);
    const limit = limits.length > 0 ? Math.log2(Math.min(...limits)) : Infinity;
    const margin = (places.at(-1) - places[0]) * 0.02;
    return {
        label: `Predicted slowdown from ${count(2 ** places[0])} to ${count(2 ** places.at(-1))} ranks, up to ${significant(high, 3)} %. The tables below have the same numbers.`,
        data: [places, ...values],
        x: { title: "ranks", log: 2, range: [places[0] - margin, places.at(-1) + margin], text: ranksOfLog },
        y: {
            title: "slowdown",
            range: [Math.min(0, low), high > 0 ? high * (limit < places.at(-1) ? 1.2 : 1.08) : 1],
            text: (value) => `${significant(value, 4)} %`,
        },
        series: parts.flatMap((part) => part.series),
        bands: parts.map((part) => part.band),
        groups: curves.map((curve, i) => ({
            name: names[i],
            style: style(i),
            kind: "line",
            series: [1, 2, 3, 4].map((at) => 4 * i + at),
            text: (at) => (number(at[0]) === null ? null : pointText(curve, places[at[0]])),
        })),
        at: (place) => `${count(2 ** place)} ranks`,
        shade: (u) => shadeBeyond(u, limit),
    };
}

/** The rows of one curve: both ends of its interval, its extrapolated part, and the part that the trace supports. */
function curveParts(curve, places, look, offset) {
    const points = pointsOf(curve).sort((a, b) => a.ranks - b.ranks);
    const lastSupported = points.filter((point) => point.supported !== false).at(-1);
    const row = (value) => {
        const byPlace = new Map(points.map((point) => [Math.log2(point.ranks), value(point)]));
        return places.map((place) => number(byPlace.get(place)));
    };
    const end = (at) => row((point) => number(point.ci95_percent?.[at]) ?? point.slowdown_percent);
    const beyond = row((point) =>
        point.supported === false || point === lastSupported ? point.slowdown_percent : null,
    );
    const within = row((point) => (point.supported === false ? null : point.slowdown_percent));
    const edge = { ...look, kind: "edge" };
    return {
        rows: [end(1), end(0), beyond, within],
        series: [
            edge,
            edge,
            { ...look, kind: "line", dash: [4, 4], marks: true, hollow: true },
            { ...look, kind: "line", marks: true },
        ],
        band: { series: [offset + 1, offset + 2], colour: look.colour },
    };
}

function pointText(curve, place) {
    const point = pointsOf(curve).find((one) => Math.log2(one.ranks) === place);
    if (!point) {
        return null;
    }
    const interval = intervalText(point) === NOTHING ? "" : ` (${intervalText(point)})`;
    return `${fixed(point.slowdown_percent, 2)} %${interval}${point.supported === false ? ", extrapolated" : ""}`;
}

/** Shades the region that the traces do not support, with a label if there is room. */
function shadeBeyond(u, limit, words = ["beyond what the trace", "can speak for"]) {
    const { left, top, width, height } = u.bbox;
    const from = Math.max(left, u.valToPos(limit, "x", true));
    const room = left + width - from;
    if (!(room > 0)) {
        return;
    }
    const context = u.ctx;
    const unit = devicePixelRatio * sharpness;
    context.save();
    context.fillStyle = colour("--shade");
    context.globalAlpha = 0.75;
    context.fillRect(from, top, room, height);
    context.globalAlpha = 1;
    context.fillStyle = colour("--quiet");
    context.font = `${12 * unit}px system-ui, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "top";
    const lines =
        [[words.join(" ")], words].find((one) =>
            one.every((line) => context.measureText(line).width < room - 16 * unit),
        ) ?? [];
    lines.forEach((line, i) => context.fillText(line, left + width - 8 * unit, top + (8 + 16 * i) * unit));
    context.restore();
}
