// The page: its sections in order, for whichever documents the data holds.

/** A page of fewer sections needs no list of them. */
const CONTENTS_FROM = 4;

const WORDS = [
    ["Detour", "One period in which a CPU was taken from the program, as the program saw it."],
    ["Noise overhead", "Time lost to detours / time observed, per CPU."],
    [
        "Resolution",
        "The shortest detour that the probe can tell from its own loop. What is shorter was not seen.",
    ],
    ["Density", "How the durations of detours are spread over the decades. Each peak is a kind of detour."],
    [
        "Source",
        "What took a CPU, as the kernel names it: the timer tick, an interrupt, a softirq, another task, the hypervisor.",
    ],
    [
        "Unattributed",
        "Time of detours in which the kernel reported nothing, or less than the detour lasted.",
    ],
    [
        "Type 1, Type 2",
        "Jones, Brenner & Fier's classes (LLNL 2003): short periodic interrupts; daemons and other tasks that run for longer.",
    ],
    ["Phase, quantum", "One compute step of a bulk-synchronous program, and its length without noise."],
    [
        "Slowdown",
        "100 × (mean with noise − mean without) / mean without. All ranks wait for the slowest, so one long detour on one rank delays them all: the slowdown grows with the ranks.",
    ],
    [
        "Sync mode",
        "How the ranks' noise lines up: none (each starts at its own place in the trace), start (same place once, then drifts apart), phase (same place in every phase).",
    ],
    [
        "Supported",
        "A trace holds a limited number of independent windows, each a quantum and the longest detour. Up to a tenth as many ranks, it supports a prediction; beyond, the prediction extrapolates, and no rank meets a detour longer than the longest that was recorded.",
    ],
    [
        "Confidence interval",
        "Where the value would be in 95 of 100 recordings like this one, estimated by resampling.",
    ],
];

/** The data of the page. A seed may exceed the integers of JavaScript, so it is kept as text. */
function readData() {
    const exact = (key, value, context) =>
        key === "seed" && context?.source ? context.source.replace(/^"|"$/g, "") : value;
    return record(JSON.parse(document.getElementById("data").textContent, exact)) ?? {};
}

/** Builds a part of the page; if it fails, the page reports that and continues. */
function part(name, make) {
    try {
        return make();
    } catch (error) {
        return paragraph(`${name} cannot be drawn: ${clean(error.message)}`, "absent");
    }
}

function title(data) {
    const audit = audited(data);
    return clean(data.title || "quell report") + (audit ? ` on ${clean(audit.host)}` : "");
}

function head(data) {
    const show = record(data.show);
    const compare = record(data.compare);
    const run = tracked(data);
    const audit = audited(data);
    const advice = advised(data);
    const tried = trialsOf(data);
    const kind = audit
        ? "Mitigations of operating-system noise"
        : run
          ? "Operating-system noise in an MPI run"
          : show
            ? "Operating-system noise"
            : compare
              ? "Operating-system noise, two recordings compared"
              : hostsOf(data) || fleetOf(data)
                ? "Operating-system noise of several hosts"
                : advice
                  ? "Operating-system noise: what it costs, and what to do about it"
                  : tried.length > 0
                    ? "Operating-system noise, before and after"
                    : "Operating-system noise, predicted";
    return [paragraph(kind, "kind"), element("h1", {}, title(data))];
}

/** The conclusion in a sentence, if there is one. */
function verdict(data) {
    const advice = advised(data);
    if (hostsOf(data) || fleetOf(data)) {
        return part("The verdict", () => verdictOfHosts(hostsOf(data), fleetOf(data)));
    }
    return advice ? verdictOf(advice) : null;
}

/** What was measured, and how: last, because it answers no question about the noise. */
function machineSection(data) {
    const [show, run, audit] = [record(data.show), tracked(data), audited(data)];
    const described = [
        show && ["The recording", () => facts(show)],
        run && ["The run", () => factsOfTrack(run)],
        audit && ["The machine", () => factsOfAudit(audit)],
    ].filter(Boolean);
    return described.length === 0
        ? null
        : section("machine", described[0][0], ...described.map(([name, make]) => part(name, make)));
}

/** Links to the sections, for a page that has many. */
function contents(page) {
    const links = [...page.querySelectorAll("section")].map((one) =>
        element("a", { href: `#${one.id}` }, one.querySelector("h2").textContent),
    );
    return links.length < CONTENTS_FROM
        ? null
        : element("nav", { class: "contents", "aria-label": "Contents" }, ...links);
}

function limits(data) {
    const all = part("The limits", () => [
        ...(record(data.show) ? limitsOfRecording(data.show) : []),
        ...(record(data.sources) ? limitsOfSources(data.sources) : []),
        ...limitsOfPredictions(predictions(data)),
        ...(advised(data) ? limitsOfAdvice(advised(data), predictions(data)) : []),
        ...limitsOfTrials(trialsOf(data)),
        ...(record(data.compare) ? limitsOfComparison(data.compare) : []),
        ...(tracked(data) ? limitsOfTrack(tracked(data)) : []),
        ...(audited(data) ? limitsOfAudit(audited(data)) : []),
        ...limitsOfHosts(hostsOf(data), fleetOf(data)),
    ]);
    if (!Array.isArray(all)) {
        return all;
    }
    const body =
        all.length > 0
            ? element("ul", {}, ...all.map((limit) => element("li", {}, limit)))
            : paragraph("None are known.");
    const made = section("limits", "Limits of these figures", body);
    made.classList.toggle("some", all.length > 0);
    return made;
}

function headline(data) {
    const tiles = part("The headline", () => [
        ...(record(data.show) ? headlineOfRecording(data.show) : []),
        ...predictions(data).slice(0, 1).flatMap(headlineOfPrediction),
        ...(advised(data) ? headlineOfAdvice(advised(data), predictions(data).length > 0) : []),
        ...headlineOfTrials(trialsOf(data)),
        ...(record(data.compare) ? headlineOfComparison(data.compare) : []),
        ...(tracked(data) ? headlineOfTrack(tracked(data)) : []),
        ...(audited(data) ? headlineOfAudit(audited(data)) : []),
        ...headlineOfHosts(hostsOf(data), fleetOf(data)),
    ]);
    if (!Array.isArray(tiles) || tiles.length === 0) {
        return Array.isArray(tiles) ? null : tiles;
    }
    const items = tiles.map(([name, value, note]) =>
        element(
            "div",
            {},
            element("dt", {}, name),
            element("dd", { class: "big" }, value),
            element("dd", { class: "note" }, note),
        ),
    );
    return element("dl", { class: "headline" }, ...items);
}

/** The sections that answer the reader's questions: what it costs, who causes it, what to do. */
function answers(data) {
    const show = record(data.show);
    const compare = record(data.compare);
    const curves = predictions(data);
    const run = tracked(data);
    const audit = audited(data);
    const advice = advised(data);
    const tried = trialsOf(data);
    const several = hostsOf(data) || fleetOf(data);
    const isExcerpt = Array.isArray(data.only);
    return [
        audit && ["The mitigations", () => auditSections(audit)],
        several && ["The hosts", () => hostSections(hostsOf(data), fleetOf(data))],
        run && ["The run", () => trackSections(run)],
        compare && ["The comparison", () => comparisonSections(compare)],
        curves.length > 0 && ["The prediction", () => predictionSection(curves)],
        curves.length === 0 && show && ["The prediction", () => noPrediction(show)],
        advice && ["The advice", () => adviceSections(advice, isExcerpt)],
        record(data.simulate) && ["The simulation", () => simulationSections(data.simulate)],
        tried.length > 0 && ["The trials", () => trialSections(tried, advice)],
    ];
}

/** The sections that show what the answers follow from. */
function evidence(data) {
    const show = record(data.show);
    const detours = show || records(data.timeline).length > 0 || records(data.density).length > 0;
    return [
        record(data.sources) && ["The sources", () => sourcesSections(data.sources)],
        detours && ["The detours", () => detourSection(data)],
        records(show?.cpus).length > 0 && ["The CPUs", () => cpuSection(show)],
        records(show?.cpus).length > 0 && ["The periods", () => periodSection(show)],
        records(show?.quanta).length > 0 && ["The quanta", () => quantaSection(show)],
        show?.method === "memory" && ["Loads from memory", () => memorySection(show)],
    ];
}

/** Draws the parts for which there is something to show. */
function drawn(parts) {
    return parts.filter(Boolean).flatMap(([name, make]) => part(name, make));
}

function noPrediction(show) {
    const reason =
        show.method === "kernel"
            ? "No probe ran, so there are no detours to predict from."
            : show.method === "memory"
            ? "The memory method times loads; a prediction needs detours."
            : records(show.quanta).length > 0
            ? "FWQ and FTQ record quanta; a prediction needs single detours."
            : records(show.cpus).every((cpu) => !(cpu.detours > 0))
              ? "There are no detours to predict from."
              : "quell made no prediction for this page.";
    return section("scale", "What it costs at scale", paragraph(reason, "absent"));
}

/** The terms of the page, each with its meaning. */
function words(data) {
    return audited(data)
        ? AUDIT_WORDS
        : tracked(data)
          ? TRACK_WORDS
          : [
                ...WORDS,
                ...(advised(data) ? ADVICE_WORDS : []),
                ...(hostsOf(data) || fleetOf(data) ? HOST_WORDS : []),
            ];
}

function foot(data) {
    const when = data.generated ? ` on ${instant(data.generated)}` : "";
    return paragraph(
        `Made by quell ${clean(data.quell)}${when}. This page is one file and loads nothing else.`,
    );
}

/** Some of the sections with their warnings, for embedding in another page. */
function excerpt(data) {
    const kept = new Set(list(data.only));
    const made = element("div", {}, ...drawn([...answers(data), ...evidence(data)]).filter(Boolean));
    const limited = limits(data);
    const chosen = [...made.querySelectorAll("section")].filter((one) => kept.has(one.id));
    return limited.classList.contains("some") ? [...chosen, limited] : chosen;
}

function main() {
    const data = readData();
    describe(data.columns);
    document.title = title(data);
    if (Array.isArray(data.only)) {
        document.getElementById("main").replaceChildren(...excerpt(data));
        document.getElementById("head").remove();
        document.getElementById("foot").remove();
        document.body.classList.add("excerpt");
        drawPlots();
        return;
    }
    document.getElementById("head").append(...head(data).filter(Boolean));
    const page = document.getElementById("main");
    const terms = section("words", "How to read this", pairs("words-list", words(data)));
    const made = [...drawn(answers(data)), limits(data), ...drawn(evidence(data)), machineSection(data)].filter(Boolean);
    const none = paragraph("There is nothing in this page: no recording, no prediction and no comparison.", "absent");
    page.replaceChildren(...(made.length > 1 ? made : [none, ...made]), terms);
    page.prepend(...[verdict(data), headline(data), contents(page)].filter(Boolean));
    linkTerms(page, words(data));
    document.getElementById("foot").append(foot(data));
    drawPlots();
}

main();
