// Trials: noise without and with a mitigation, in pairs, and the effect at scale.

const TRIAL_VERDICTS = {
    helps: "↓ it helps",
    hurts: "↑ it makes more noise",
    "no-effect-larger-than": "no effect larger than",
    inconclusive: "inconclusive",
    // Trials of `quell.tune-try/2` and before.
    "no-measurable-effect": "no measurable effect",
};
/** Larger ends of an interval are unknown, because there were too few pairs. */
const UNKNOWN_END = 1e300;
const WITHOUT = { colour: "--series-1", dash: [], shape: "circle" };
const WITH = { colour: "--series-0", dash: [8, 4], shape: "square" };

/** All trials, in the order of the data. */
function trialsOf(data) {
    return records(data.trials).flatMap((one) => records(one.mitigations));
}

/** The verdict, with the limit of an effect or what would resolve it. */
function trialVerdict(one) {
    const text = TRIAL_VERDICTS[one.verdict] ?? clean(one.verdict);
    const detours = record(record(one.trial)?.detours);
    if (one.verdict === "no-effect-larger-than" && detours) {
        const share = (100 * detours.limit_ns_per_s) / detours.without_ns_per_s;
        const percent = Number.isFinite(share) ? ` (${significant(share, 3)} %)` : "";
        return `${text} ${rate(detours.limit_ns_per_s)} in a second of a CPU${percent}`;
    }
    const further = number(record(one.trial)?.further_pairs);
    return one.verdict === "inconclusive" && further !== null
        ? `${text}: about ${plural(further, "more pair")} would tell`
        : text;
}

function headlineOfTrials(tried) {
    return tried
        .filter((one) => record(one.trial))
        .slice(0, 2)
        .map((one) => [
            `${clean(one.id)}, tried`,
            trialVerdict(one),
            gainText(record(one.trial.detours)),
        ]);
}

function limitsOfTrials(tried) {
    return tried.flatMap((one) => [
        ...list(one.sentences).map((sentence) => `Trial of ${clean(one.id)}: ${clean(sentence)}`),
        ...(one.lost_without + one.lost_with > 0
            ? [
                  `Trial of ${clean(one.id)}: events were lost, ${count(one.lost_without)} without it and ${count(one.lost_with)} with it; no figure includes them`,
              ]
            : []),
    ]);
}

/** The noise before and after, for each mitigation that was tried. */
function trialSections(tried, advice) {
    return section(
        "trials",
        "Before and after",
        paragraph(
            "Each mitigation was switched on and off in turn, and the noise recorded both ways, in pairs whose order was drawn. What drifts on the machine cancels out in a pair.",
        ),
        ...tried.map((one) => part(`The trial of ${clean(one.id)}`, () => trialPart(one, advice))),
    );
}

function trialPart(one, advice) {
    const trial = record(one.trial);
    const heading = element("h3", {}, clean(one.id));
    const titled = paragraph(clean(one.title), "quiet");
    if (!trial) {
        return element(
            "div",
            { class: "trial" },
            heading,
            titled,
            paragraph(`Not tried: ${ownSentence(one.not_tried ?? "no reason was given")}`),
        );
    }
    const verdict = trialVerdict(one);
    const kept = one.kept === true ? " It stays applied until quell tune revert takes it back." : "";
    const refused = list(one.not_taken).map((pair) =>
        element("li", {}, `Not taken: ${list(pair).map(clean).join(": ")}`),
    );
    return element(
        "div",
        { class: "trial" },
        heading,
        titled,
        element(
            "p",
            { class: "lead" },
            element(
                "strong",
                { class: `verdict ${one.verdict in TRIAL_VERDICTS ? one.verdict : ""}` },
                verdict,
            ),
            `: ${gainText(record(trial.detours))}. ${plural(trial.pairs, "pair")} of recordings; the intervals hold jointly with ${significant(100 * trial.confidence, 4)} % confidence.${kept}`,
        ),
        refused.length > 0 ? element("ul", {}, ...refused) : null,
        trialTable(trial),
        trialAtScale(one, advice),
    );
}

/** A rate of noise: time per second of a CPU. */
function rate(ns) {
    return number(ns) === null || Math.abs(ns) > UNKNOWN_END ? NOTHING : signed(ns, duration);
}

/** The change of all detours, with its interval. */
function gainText(effect) {
    if (!effect) {
        return "";
    }
    const between = rateBetween(effect);
    const less = effect.gain_ns_per_s >= 0;
    const by = rate(Math.abs(effect.gain_ns_per_s));
    return `${by} ${less ? "less" : "more"} noise in a second of a CPU${between === NOTHING ? "" : `, gain ${between}`}`;
}

function rateBetween(effect) {
    const [low, high] = [rate(effect.low_ns_per_s), rate(effect.high_ns_per_s)];
    return low === NOTHING || high === NOTHING || low === high ? NOTHING : `${low} … ${high}`;
}

function trialTable(trial) {
    const rows = [
        { ...record(trial.detours), name: "all detours" },
        { ...record(trial.addressed), name: "what it addresses" },
        ...records(trial.sources),
    ];
    const most = Math.max(
        ...rows.flatMap((row) => [number(row.without_ns_per_s) ?? 0, number(row.with_ns_per_s) ?? 0]),
    );
    const columns = [
        {
            head: "Noise in a second of a CPU",
            left: true,
            kind: () => "name",
            text: (row) => clean(row.name),
        },
        {
            head: "Without, with",
            left: true,
            key: (row) => number(row.without_ns_per_s),
            text: (row) => pairBars(row, most),
        },
        { head: "Without", ...made((row) => row.without_ns_per_s, rate) },
        { head: "With", ...made((row) => row.with_ns_per_s, rate) },
        { head: "Gain", ...made((row) => row.gain_ns_per_s, rate) },
        { head: "Interval of the gain", key: (row) => number(row.low_ns_per_s), text: rateBetween },
        {
            head: "Change",
            left: true,
            text: (row) =>
                row.changed === true ? (row.gain_ns_per_s > 0 ? "↓ less" : "↑ more") : "none for sure",
            kind: (row) => (row.changed === true ? (row.gain_ns_per_s > 0 ? "lower" : "higher") : "quiet"),
        },
    ];
    const key = (name, kind) =>
        element("span", { class: "swatch" }, element("i", { class: `piece ${kind}` }), name);
    const made = table("Noise without the mitigation and with it: means over the pairs.", columns, rows);
    made.firstChild.after(
        element("div", { class: "keys" }, key("without", "series-1"), key("with", "series-0")),
    );
    return made;
}

/** Two bars, one above the other. */
function pairBars(row, most) {
    const bar = (value, kind) =>
        element("i", { class: kind, style: `width: ${most > 0 && value > 0 ? (100 * value) / most : 0}%` });
    return element(
        "span",
        {
            class: "before-after",
            role: "img",
            "aria-label": `without ${rate(row.without_ns_per_s)}, with ${rate(row.with_ns_per_s)}`,
        },
        bar(row.without_ns_per_s, "series-1"),
        bar(row.with_ns_per_s, "series-0"),
    );
}

/** The predicted slowdown of a program with many ranks, without and with the mitigation, next to the prediction of the advice. */
function trialAtScale(one, advice) {
    const scale = record(one.scale);
    const withBy = new Map(pointsOf({ points: scale?.with }).map((point) => [point.ranks, point]));
    const rows = pointsOf({ points: scale?.without })
        .filter((without) => withBy.has(without.ranks))
        .map((without) => ({ ranks: without.ranks, without, with: withBy.get(without.ranks) }))
        .map((row) => ({
            ...row,
            gain: row.without.slowdown_percent - row.with.slowdown_percent,
            supported: row.without.supported !== false && row.with.supported !== false,
            advised: advisedGain(one.id, row.ranks, scale, advice),
        }))
        .sort((a, b) => a.ranks - b.ranks);
    if (rows.length === 0) {
        return null;
    }
    const at = (head, side) => [
        { head, key: (row) => row[side].slowdown_percent, text: (row) => points(row[side].slowdown_percent) },
        {
            head: "95 % interval",
            key: (row) => number(list(row[side].ci95_percent)[0]),
            text: (row) => pointsBetween(row[side].ci95_percent),
        },
    ];
    const columns = [
        { head: "Ranks", ...made((row) => row.ranks, count) },
        ...at("Without, %", "without"),
        ...at("With, %", "with"),
        { head: "Gain, points", key: (row) => row.gain, text: (row) => points(row.gain) },
        {
            head: "Gain that was predicted",
            key: (row) => number(row.advised?.gain_percent),
            text: (row) =>
                row.advised
                    ? [points(row.advised.gain_percent), pointsBetween(row.advised.gain_ci95_percent)]
                          .filter((text) => text !== NOTHING)
                          .map((text, i) => (i === 0 ? text : `(${text})`))
                          .join(" ")
                    : NOTHING,
        },
        beyondColumn(),
    ];
    return element(
        "div",
        {},
        rows.length > 1
            ? plotFigure(
                  `What phases of ${duration(scale.quantum_ns)} lose at scale, from the recordings of both sides, with 95 % confidence intervals.`,
                  () => trialSpec(rows),
              )
            : null,
        contextAdvice(rows),
        table(
            `Slowdown of phases of ${duration(scale.quantum_ns)}, without and with ${clean(one.id)}.`,
            filled(columns, rows),
            rows,
        ),
    );
}

/** The prediction of the advice for the same job on all CPUs; null if the advice is for another job. */
function advisedGain(id, ranks, scale, advice) {
    const job = record(advice?.job);
    if (!job || job.quantum_ns !== scale.quantum_ns || job.op !== "max" || job.sync !== "none") {
        return null;
    }
    const proposal = records(advice.mitigations).find((one) => one.id === id);
    return records(proposal?.effects).find((effect) => effect.ranks === ranks) ?? null;
}

/** `Predicted 20.10, measured 18.70 points at 2 ranks`, for the smallest and the largest number of ranks that the recordings support. */
function contextAdvice(rows) {
    const both = rows.filter((row) => row.advised && row.supported);
    const shown = both.length > 0 ? both : rows.filter((row) => row.advised);
    if (shown.length === 0) {
        return null;
    }
    const text = (row) =>
        `predicted ${points(row.advised.gain_percent)}, measured ${points(row.gain)} points ${atRanks(row)}`;
    const ends = [...new Set([shown[0], shown.at(-1)])];
    return paragraph(
        `The gain, by advice from a recording and by this trial: ${ends.map(text).join("; ")}.`,
        "lead",
    );
}

function trialSpec(rows) {
    const places = rows.map((row) => Math.log2(row.ranks));
    const ends = (side, end) =>
        rows.map((row) => number(list(row[side].ci95_percent)[end]) ?? row[side].slowdown_percent);
    const means = (side) => rows.map((row) => row[side].slowdown_percent);
    const sides = ["without", "with"];
    const data = sides.flatMap((side) => [ends(side, 1), ends(side, 0), means(side)]);
    const [low, high] = extent(data);
    const margin = (places.at(-1) - places[0]) * 0.02;
    const looks = [WITHOUT, WITH];
    const within = rows.filter((row) => row.supported).map((row) => row.ranks);
    const limit = within.length < rows.length ? Math.log2(Math.max(1, ...within)) : Infinity;
    return {
        label: `Slowdown without and with the mitigation from ${count(rows[0].ranks)} to ${count(rows.at(-1).ranks)} ranks. The table below has the same numbers.`,
        data: [places, ...data],
        x: { title: "ranks", log: 2, range: [places[0] - margin, places.at(-1) + margin], text: ranksOfLog },
        y: {
            title: "slowdown",
            range: [Math.min(0, low), high > 0 ? high * 1.08 : 1],
            text: (value) => `${significant(value, 4)} %`,
        },
        series: looks.flatMap((look) => [
            { ...look, kind: "edge" },
            { ...look, kind: "edge" },
            { ...look, kind: "line", marks: true },
        ]),
        bands: looks.map((look, n) => ({ series: [3 * n + 1, 3 * n + 2], colour: look.colour })),
        groups: sides.map((side, n) => ({
            name: side,
            style: looks[n],
            kind: "line",
            series: [3 * n + 1, 3 * n + 2, 3 * n + 3],
            text: (at) => {
                const point = rows[at[0]]?.[side];
                return point ? withInterval(point.slowdown_percent, point.ci95_percent) : null;
            },
        })),
        at: (place) => `${count(Math.round(2 ** place))} ranks`,
        shade: (u) => shadeBeyond(u, limit),
    };
}
