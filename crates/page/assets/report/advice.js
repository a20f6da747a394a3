// Advice: what the noise costs, which sources cause it, what-if results, and what to do.

const ADVICE_WORDS = [
    [
        "Share, gain, alone",
        "Three answers to what a source costs. Share: its part of the slowest ranks' detours; all shares add up to the slowdown. Gain: the reduction of the slowdown if the source is removed. Alone: the slowdown if there were no other noise.",
    ],
    [
        "Overlap",
        "The part of the slowdown that no single removal recovers. If two sources delay different ranks in one phase, the longer one hides the shorter: with only one of them removed, the ranks still wait for the other.",
    ],
    [
        "Worth it",
        "A mitigation that saves a job at least half a percent of its time, where the interval of its gain does not include zero.",
    ],
];

/** The name in the data of all small sources together. */
const SMALL_SOURCES = "all others";

/** The advice that can be shown, or null. */
function advised(data) {
    const advice = record(data.advice);
    return advice && scalesOf(advice).length > 0 ? advice : null;
}

/** The scales in the order of the data, each with its index `at` in it. */
function scalesOf(advice) {
    return records(advice.scales)
        .map((scale, at) => ({ ...scale, at }))
        .filter((scale) => scale.ranks > 0 && number(scale.slowdown_percent) !== null);
}

/** The scales for an axis: each number of ranks once, ascending. */
function scalesUpwards(advice) {
    const by = new Map(scalesOf(advice).map((scale) => [scale.ranks, scale]));
    return [...by.values()].sort((a, b) => a.ranks - b.ranks);
}

/** A percentage, or percentage points, with as many decimals as are significant to a reader. */
function points(value) {
    if (number(value) === null) {
        return NOTHING;
    }
    const size = Math.abs(value);
    const decimals = size >= 99.995 ? 0 : size >= 0.0995 || size === 0 ? 2 : 3;
    return signed(size < 0.0005 ? 0 : value, (v) => fixed(v, decimals));
}

/** An interval of percentages; null if it has no width. */
function pointsBetween(interval) {
    const [low, high] = list(interval);
    return number(low) === null || number(high) === null || low === high
        ? NOTHING
        : `${points(low)} – ${points(high)}`;
}

/** A value, followed by its interval in parentheses, if it has one. */
function withInterval(value, interval) {
    const between = pointsBetween(interval);
    return `${points(value)} %${between === NOTHING ? "" : ` (${between})`}`;
}

function atRanks(scale) {
    return scale.ranks === 1 ? "on 1 rank" : `at ${count(scale.ranks)} ranks`;
}

/** `a`, `a and b`, `a, b and c`. */
function listed(names) {
    return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** A sentence of the data, formatted as a sentence of its own. */
function ownSentence(given) {
    const text = clean(given);
    return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** The headline, with the cost only if no prediction shows it already. */
function headlineOfAdvice(advice, predicted) {
    const last = scalesOf(advice).at(-1);
    const most = records(advice.sources)
        .map((source) => ({ name: clean(source.source), cost: record(list(source.costs)[last.at]) }))
        .filter((one) => one.cost?.part_percent > 0)
        .sort((a, b) => b.cost.part_percent - a.cost.part_percent)[0];
    const best = record(advice.best);
    const effect = best && records(best.effects).at(-1);
    return [
        !predicted && [
            `Noise costs ${atRanks(last)}`,
            `${significant(last.slowdown_percent, 3)} %`,
            [
                last.supported === false ? "extrapolated" : null,
                pointsBetween(last.ci95_percent) === NOTHING
                    ? null
                    : `95 %: ${pointsBetween(last.ci95_percent)} %`,
            ]
                .filter(Boolean)
                .join("; "),
        ],
        most && [
            "The costliest source",
            most.name,
            `${significant((100 * most.cost.part_percent) / Math.max(last.slowdown_percent, 1e-9), 2)} % of the slowdown ${atRanks(last)}`,
        ],
        effect && [
            "What is recommended would leave",
            `${significant(effect.after_percent, 3)} %`,
            `with ${listed(list(best.ids).map(clean))}${best.on_cpus ? `, on ${cpusCalled(best.on_cpus)}` : ""}`,
        ],
    ].filter(Boolean);
}

/** The warnings of the advice that are not among those of the predictions. */
function limitsOfAdvice(advice, curves) {
    const shown = curves.flatMap((curve) => list(curve.sentences));
    return list(advice.sentences)
        .filter((sentence) => !shown.includes(sentence))
        .map((sentence) => `Advice: ${clean(sentence)}`);
}

/** `CPU 1`, `CPUs 0-3`. */
function cpusCalled(cpus) {
    return /^\d+$/.test(cpus) ? `CPU ${cpus}` : `CPUs ${clean(cpus)}`;
}

/** The conclusion in a sentence. */
function verdictOf(advice) {
    return paragraph(
        ownSentence(advice.verdict).replace(/^./u, (first) => first.toUpperCase()),
        "lead",
    );
}

/** All sections of the advice, in order. The page begins with its verdict; an excerpt has it in its first section. */
function adviceSections(advice, isExcerpt) {
    return element(
        "div",
        {},
        section(
            "advice",
            "Who causes it",
            isExcerpt ? verdictOf(advice) : null,
            paragraph(jobOf(advice)),
            splitFigure(advice),
        ),
        part("The what-if", () => whatIfSection(advice)),
        part("The table of sources", () => costSection(advice)),
        part("The remedies", () => remedySection(advice)),
    );
}

/** A description of the job and its nodes. */
function jobOf(advice) {
    const job = record(advice.job) ?? {};
    const nodes = records(advice.nodes).map((node) => `${clean(node.name)} (${plural(node.cpus, "CPU")})`);
    const shown = nodes.length > 6 ? [...nodes.slice(0, 5), plural(nodes.length - 5, "other")] : nodes;
    const runs =
        number(job.quantum_ns) === null
            ? `An application's schedule, ${plural(job.phases, "run")}`
            : `Phases of ${duration(job.quantum_ns)}, after which ${
                  job.op === "max" ? "all ranks wait for the slowest" : `comes ${clean(job.op)}`
              }; sync ${clean(job.sync)}; ${plural(job.phases, "phase")} for each number of ranks`;
    return `${runs}, seed ${clean(job.seed)}. The noise is that of ${listed(shown) || "no node"}.`;
}

/** The result of `make(scale)` with a selector for the scale, which starts with the last one. */
function atScale(advice, id, make) {
    const scales = scalesOf(advice);
    const place = element("div");
    const show = (scale) => place.replaceChildren(...make(scale).filter(Boolean));
    show(scales.at(-1));
    if (scales.length < 2) {
        return [place];
    }
    const option = (scale, n) =>
        element(
            "option",
            { value: String(n) },
            `${plural(scale.ranks, "rank")}${scale.supported === false ? ", extrapolated" : ""}`,
        );
    const choice = element("select", { id }, ...scales.map(option));
    choice.value = String(scales.length - 1);
    choice.addEventListener("change", () => show(scales[Number(choice.value)]));
    return [element("div", { class: "choice" }, element("label", { for: id }, "Figures at"), choice), place];
}
