// Mitigations: which are applied, what noise they address, and what could not be determined.

/** States in the order in which they are listed: name, mark, meaning. */
const MITIGATION_STATES = new Map([
    ["applied", ["applied", "every setting has the wanted value"]],
    ["partial", ["partly applied", "some settings have the wanted value"]],
    ["not-applied", ["not applied", "no setting has the wanted value"]],
    ["cannot-tell", ["cannot tell", "it cannot be seen; its row says why"]],
    ["not-readable", ["not readable", "this user may not read it; its row says who may"]],
    ["not-mounted", ["not mounted", "its file system is not mounted; its row has the command"]],
    ["not-here", ["not here", "nothing that it touches is on this machine"]],
]);

const MITIGATION_RISKS = new Map([
    ["low", "A user of the node notices only less noise"],
    ["medium", "May disable a feature that someone uses"],
    ["high", "The node can hang, lose work or lose a protection"],
    ["external", "Not changeable from this machine"],
]);

const AUDIT_WORDS = [
    ["Mitigation", "A change that removes one kind of noise, with its id in quell tune."],
    ["State", [...MITIGATION_STATES.values()].map(([word, means]) => `${word}: ${means}`).join("; ") + "."],
    [
        "Risk",
        [...MITIGATION_RISKS]
            .map(([word, means]) => `${word}: ${means[0].toLowerCase()}${means.slice(1)}`)
            .join("; ") + ".",
    ],
    [
        "Noise %",
        "Time of the intervals that match the mitigation's patterns, over the time observed on all CPUs. It is the most that can be gained, not what will be gained.",
    ],
    ["Times, longest", "How many such intervals there were, and how long the longest of them took."],
    ["Place", "One thing that a mitigation writes: a file, an interrupt, a thread, a unit, a cpuset."],
    [
        "Plan",
        "The old and new values that chosen mitigations would write. Making a plan changes nothing on the machine; quell tune apply does. A plan made with --persist survives the next boot.",
    ],
];

/** The audit, if the page has one. */
function audited(data) {
    const audit = record(data.audit);
    return audit && Array.isArray(audit.mitigations) ? audit : null;
}

function factsOfAudit(audit) {
    const names = list(audit.recordings).map(clean).join(", ");
    return pairs("facts", [
        ["Host", clean(audit.host)],
        ["Kernel", clean(audit.kernel)],
        ["CPUs that compute", clean(audit.compute ?? audit.no_parts)],
        ["CPUs left to the system", clean(audit.housekeeping)],
        [list(audit.recordings).length > 1 ? "Recordings" : "Recording", names || "none"],
    ]);
}

function headlineOfAudit(audit) {
    const rows = records(audit.mitigations);
    return [...MITIGATION_STATES]
        .map(([state, [word, means]]) => [word, rows.filter((row) => row.state === state).length, means])
        .filter(([, found]) => found > 0)
        .map(([word, found, means]) => [word[0].toUpperCase() + word.slice(1), count(found), means]);
}

function limitsOfAudit(audit) {
    const noisy = records(audit.mitigations).some(noiseOf);
    const recorded = list(audit.recordings).length > 0;
    const unseen = records(audit.unseen).length;
    return [
        audit.no_parts ? `The machine has no CPUs to compute on: ${clean(audit.no_parts)}.` : null,
        unseen > 0
            ? `${plural(unseen, "place")} could not be seen${audit.unprivileged ? "; root sees more" : ""}.`
            : audit.unprivileged
              ? "The audit ran without root, which can read more."
              : null,
        noisy
            ? "Several mitigations address the same noise, so their noise does not add up; and a mitigation may remove only a part of the noise that it addresses."
            : recorded
              ? "The recording has no sources, so they cannot order the mitigations: record with --sources on."
              : "Without a recording quell does not know how much noise each mitigation addresses. Give one to quell tune audit.",
    ].filter(Boolean);
}

/** The noise that a mitigation addresses, if there is any. */
function noiseOf(row) {
    const noise = record(row.noise);
    return noise && noise.count > 0 ? noise : null;
}

/** The sections of an audit. */
function auditSections(audit) {
    const made = mitigationTable(audit);
    return element("div", {}, made.section, unseenSection(audit, made.link));
}

const STATE_MARKS = new Map([
    [
        "applied",
        [
            ["circle", { cx: 8, cy: 8, r: 7, class: "full" }],
            ["path", { d: "M4.6 8.3 7 10.7 11.4 5.6", class: "cut" }],
        ],
    ],
    [
        "partial",
        [
            ["circle", { cx: 8, cy: 8, r: 6.2 }],
            ["path", { d: "M8 1.8a6.2 6.2 0 0 0 0 12.4z", class: "full" }],
        ],
    ],
    ["not-applied", [["circle", { cx: 8, cy: 8, r: 6.2 }]]],
    [
        "cannot-tell",
        [
            ["path", { d: "M5.2 5.6a2.8 2.8 0 1 1 4 2.5c-.8.4-1.2.9-1.2 1.9" }],
            ["path", { d: "M8 13.2v.1" }],
        ],
    ],
    ["not-here", [["path", { d: "M3.5 8h9" }]]],
]);
/** What cannot be seen has one mark; the word next to it says why. */
const UNSEEN_STATES = ["cannot-tell", "not-readable", "not-mounted"];
UNSEEN_STATES.forEach((state) => STATE_MARKS.set(state, STATE_MARKS.get("cannot-tell")));

/** A small drawing for a state; its name is next to it. */
function stateMark(state) {
    const mark = shapeElement("svg", {
        viewBox: "0 0 16 16",
        width: "14",
        height: "14",
        "aria-hidden": "true",
    });
    const drawn = STATE_MARKS.get(state) ?? [];
    mark.append(...drawn.map(([tag, properties]) => shapeElement(tag, properties)));
    return mark;
}

/** The CSS class for a value of the data: the value itself, or `unknown` if `words` does not have it. */
function known(words, value) {
    return words.has(value) ? value : "unknown";
}

function stateWord(state) {
    return MITIGATION_STATES.get(state)?.[0] ?? clean(state);
}

function stateLabel(state) {
    return element(
        "span",
        { class: `state ${known(MITIGATION_STATES, state)}` },
        stateMark(state),
        stateWord(state),
    );
}

/** What could not be determined or read, grouped by the reason. */
function unseenSection(audit, link) {
    const unknown = records(audit.mitigations).filter((row) => UNSEEN_STATES.includes(row.state));
    const unseen = records(audit.unseen);
    if (unknown.length === 0 && unseen.length === 0) {
        return section("unseen", "What could not be seen", paragraph("Everything could be seen."));
    }
    const joined = (parts) => parts.flatMap((made, at) => (at === 0 ? [made] : [", ", made]));
    const reasons = [...grouped(unknown, (row) => String(row.why ?? "it gives no reason"))].map(
        ([why, rows]) => element("li", {}, `${asSentence(why)} `, ...joined(rows.map((row) => link(row.id)))),
    );
    const hidden = [...grouped(unseen, (one) => `${one.mitigation}\n${one.why}`).values()].map((places) => {
        const shown = places.slice(0, MAX_LISTED);
        const rest = places.length - shown.length;
        return element(
            "li",
            {},
            link(places[0].mitigation),
            ": ",
            ...joined(shown.map((one) => element("code", {}, clean(one.place)))),
            rest > 0 ? ` and ${count(rest)} more` : null,
            `: ${clean(places[0].why)}`,
        );
    });
    return section(
        "unseen",
        "What could not be seen",
        reasons.length > 0
            ? paragraph(`${plural(unknown.length, "mitigation")} of which it cannot be text how they stand:`)
            : null,
        reasons.length > 0 ? element("ul", {}, ...reasons) : null,
        hidden.length > 0
            ? paragraph(
                  `${plural(unseen.length, "place")} that could not be seen${audit.unprivileged ? " (root sees more)" : ""}:`,
              )
            : null,
        hidden.length > 0 ? element("ul", {}, ...hidden) : null,
    );
}

/** Groups rows by a key, in the order in which keys first occur. */
function grouped(rows, key) {
    const groups = new Map();
    for (const row of rows) {
        groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
    }
    return groups;
}
