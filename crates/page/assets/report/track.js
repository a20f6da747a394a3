// What noise did to an MPI run: figures, tables, and findings about its archive.

/** Maximum number of findings to list individually. */
const MAX_LISTED = 8;

const TRACK_WORDS = [
    ["Noise", "Time that the kernel or other tasks took from a rank while it could have run."],
    ["Local", "Noise that took time from the rank itself."],
    [
        "Accumulated",
        "By how much a rank ended later than it would have without noise: its local noise, plus what others' noise added at communication, minus what was absorbed.",
    ],
    ["Amplified", "What a rank lost by waiting for others that noise had made late."],
    [
        "Absorbed",
        "A rank's own noise that delayed nothing: it would have waited for others anyway.",
    ],
    [
        "Ratio",
        "Accumulated noise over local noise. Above 1 noise is amplified on its way through the program, below 1 it is absorbed.",
    ],
    [
        "Share, orthogonal sum",
        "What a source costs alone, over what all cost together. If the shares add up to more than 1, sources hide one another: removing one of them saves less than its share.",
    ],
    ["Run shorter by", "How much earlier the last rank would have ended without this source alone."],
];

const TRACK_FINDINGS = [
    ["unbalanced", (n) => `${plural(n, "region")} left without having been entered, or the other way round`],
    ["undefined", (n) => `${plural(n, "event")} that name what the archive does not define`],
    ["receives_without_send", (n) => `${plural(n, "receive")} of messages that no rank sent`],
    ["sends_without_receive", (n) => `${plural(n, "message")} that no rank received`],
    ["incomplete_collectives", (n) => `${plural(n, "collective")} in which ranks are missing`],
    ["mismatched_collectives", (n) => `${plural(n, "collective")} of which ranks did not agree on what they are`],
    ["counters_backwards", (n) => `${plural(n, "time", "times")} a noise counter went back`],
];

function tracked(data) {
    const run = record(data.track);
    return run && record(run.ranks) ? run : null;
}

function factsOfTrack(run) {
    const { all_ranks: ranks, hosts } = run;
    return pairs("facts", [
        ["Ranks", hosts > 0 ? `${count(ranks)} on ${plural(hosts, "host")}` : count(ranks)],
        ["Events", count(run.events)],
        ["Sources of noise", run.counted ? count(records(run.sources).length) + " with noise" : "none counted"],
        ...records(run.eager_limits).map(eagerLimit),
    ]);
}

/** From which size on sends waited for their receivers, and how that is known. */
function eagerLimit({ between, limit_bytes: bytes, origin }) {
    const which = { "one host": " within a host", "different hosts": " between hosts" }[between] ?? "";
    return [`Sends${which} wait`, `above ${count(bytes)} B (${clean(origin)})`];
}

function unknownWaits(waits) {
    if (waits.length === 0) {
        return null;
    }
    const time = waits.reduce((sum, wait) => sum + wait.time_ns, 0);
    const calls = waits.map((wait) => clean(wait.call)).join(", ");
    return `${duration(time)} in calls that may wait for other ranks in ways that the archive does not show counts as work: ${calls}.`;
}

function headlineOfTrack(run) {
    const saved = run.runtime_ns - run.compensated_runtime_ns;
    const calls = [["MPI_Init", run.init_ns], ["MPI_Finalize", run.finalize_ns]].filter(([, ns]) => ns > 0);
    const ownOfMpi = calls.map(([call, ns]) => `${duration(ns)} in ${call}`).join(" and ");
    const what = ownOfMpi ? `of it ${ownOfMpi}` : "from the beginning to the end of the last rank";
    const time = ["Run time", duration(run.runtime_ns), what];
    if (!run.counted) {
        return [time];
    }
    const percent = run.compensated_runtime_ns > 0 ? (100 * saved) / run.compensated_runtime_ns : null;
    const struck = run.time_ns > 0 ? (100 * run.local_ns) / run.time_ns : null;
    return [
        time,
        ["Without noise", duration(run.compensated_runtime_ns), `${duration(saved)} less`],
        ["Longer by noise", `${significant(percent, 3)} %`, "of the run without noise"],
        [
            "Amplification",
            run.local_ns > 0 ? significant(run.accumulated_ns / run.local_ns, 3) : NOTHING,
            `noise took ${significant(struck, 3)} % of the ranks' time, and delayed their ends by this many times as much`,
        ],
    ];
}

function limitsOfTrack(run) {
    const found = record(run.findings) ?? {};
    const drawn = list(run.ranks.rank).length;
    const wrong = TRACK_FINDINGS.filter(([field]) => found[field] > 0).map(([field, say]) => say(found[field]));
    const clocks = [
        ["clock_backwards", "a clock ran backwards"],
        ["before_cause", "something ended before what it waited for: clocks that disagree"],
    ].flatMap(([field, words]) => {
        const { times, largest_ns: largest } = record(found[field]) ?? {};
        return times > 0 ? [`${plural(times, "time")} ${words}, by at most ${duration(largest)}`] : [];
    });
    wrong.push(...clocks);
    return [
        run.counted
            ? null
            : "No noise was counted: the archive has no counters of it. So it is unknown whether the run was quiet.",
        list(run.sentences).length > 0
            ? `The archive is incomplete or contradicts itself${wrong.length > 0 ? ": " : ""}${wrong.join("; ")}.`
            : null,
        ...list(run.sentences).slice(0, MAX_LISTED).map(clean),
        list(run.sentences).length > MAX_LISTED
            ? `And ${count(run.sentences.length - MAX_LISTED)} more, which quell track --json lists.`
            : null,
        unknownWaits(records(run.unknown_waits)),
        found.noise_without_time_ns > 0
            ? `${duration(found.noise_without_time_ns)} of the noise that was counted had no place between the events: it is in the local noise, and in nothing else.`
            : null,
        drawn < run.all_ranks
            ? `${count(drawn)} of ${count(run.all_ranks)} ranks are drawn: evenly spread, those that lost most among them. Figures of sources and places are of all ranks.`
            : null,
    ].filter(Boolean);
}

/** The sections of an MPI run. */
function trackSections(run) {
    const sources = records(run.sources);
    const body = !run.counted
        ? [paragraph("This archive has no noise counters: quell trace records them.", "absent")]
        : sources.length === 0
          ? [paragraph("The noise counters in the archive stayed at zero.", "absent")]
          : [
                section("accumulated", "Accumulated noise", plotFigure(
                    "By how much each rank ended later: without all noise, and without one source of it.",
                    () => accumulatedSpec(run),
                )),
                section("sources", "Sources", trackSourceTable(run, sources)),
                section("ratio", "Amplification", plotFigure(
                    "Accumulated over local noise of each rank, sorted. Above the line at 1 a rank lost more than its local noise.",
                    () => ratioSpec(run),
                )),
                section("composition", "Composition", plotFigure(
                    "Share of each source in what all noise cost the rank, and the sum of the shares. Above 100 % sources hide one another.",
                    () => compositionSpec(run),
                )),
                section("profile", "Profile", profileFigure(run)),
            ];
    return element("div", {}, ...body, rankSection(run), threadSection(run), placeSection(run));
}

function trackSourceTable(run, sources) {
    const sum = number(run.orthogonal_sum_ratio);
    const words =
        sum === null
            ? ""
            : ` The shares add up to ${fixed(100 * sum, 1)} %: ${sum > 1.005 ? "sources hide one another" : "each adds its own"}.`;
    return rowTable("track_sources", `What each source did, over all ranks.${words}`, sources);
}

function rankSection(run) {
    const ranks = run.ranks;
    const few = list(ranks.rank).length <= 256 && list(ranks.rank).length === run.all_ranks;
    const places = few ? ranks.rank.map((_, at) => at) : list(ranks.worst);
    const rows = places.map((at) => ({
        rank: ranks.rank[at],
        host: ranks.host[at],
        runtime_ns: ranks.runtime[at],
        ...(run.counted ? noiseHow(ranks, at) : {}),
    }));
    const caption = few ? "Each rank." : `The ${rows.length} of ${count(run.all_ranks)} ranks that lost the most.`;
    return section("ranks", "Ranks", rowTable("track_ranks", caption, rows));
}

function threadSection(run) {
    const rows = records(run.threads);
    if (rows.length === 0) {
        return null;
    }
    const caption = `Threads other than each rank's first: the ${rows.length} of ${count(run.all_threads)} with most noise.`;
    return section("threads", "Threads", rowTable("track_threads", caption, rows));
}

function noiseHow(ranks, at) {
    return {
        compensated_ns: ranks.runtime[at] - ranks.accumulated[at],
        local_ns: ranks.local[at],
        accumulated_ns: ranks.accumulated[at],
        amplified_ns: ranks.amplified[at],
        absorbed_ns: ranks.absorbed[at],
        amplification_ratio: ranks.local[at] > 0 ? ranks.accumulated[at] / ranks.local[at] : null,
    };
}

function placeSection(run) {
    const rows = records(run.paths);
    if (rows.length === 0) {
        return null;
    }
    const where = (row) =>
        list(row.path).length > 0 ? row.path.map(clean).join(" › ") : "the program's own work";
    const fewer = run.all_paths > rows.length ? ` The ${rows.length} costliest of ${count(run.all_paths)}.` : "";
    return section(
        "places",
        "Places in the program",
        rowTable(
            "track_paths",
            `Where noise occurred, was passed on, and was absorbed, over all ranks.${fewer}`,
            rows,
            { path: { text: where, key: where } },
        ),
    );
}
