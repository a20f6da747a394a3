// Mitigations: what is possible, what slowdown would be left, and the command that tests it.

const STANDINGS = {
    possible: "possible",
    "by-hand": "by hand",
    on: "on already",
    impossible: "not here",
    "cannot-tell": "not known",
};
const MOST_ADDRESSED = 3;

function remedySection(advice) {
    const all = records(advice.mitigations);
    const can = all.filter((one) => one.standing === "possible" || one.standing === "by-hand");
    const weighed = can.filter((one) => records(one.effects).length > 0);
    const slight = can.filter((one) => !weighed.includes(one));
    const of = (standing) => all.filter((one) => one.standing === standing);
    return section(
        "remedies",
        "What could be done",
        paragraph(remediesText(advice, all, weighed), "lead"),
        tryCommand(advice),
        ...(weighed.length > 0
            ? atScale(advice, "remedies-scale", (scale) => [remedyTable(weighed, scale)])
            : []),
        bestTable(record(advice.best)),
        foldedRemedies(
            "Possible, without a prediction: addresses next to nothing, or needs a CPU that the job leaves free",
            slight,
        ),
        foldedRemedies("Applied already: the recording does not contain its noise", of("applied")),
        foldedRemedies("Not possible on this machine", of("impossible")),
        foldedRemedies("Unknown whether it is possible here", of("cannot-tell")),
        leaveSection(record(advice.leave)),
    );
}

/** The conclusion, even if there is little to gain. */
function remediesText(advice, all, weighed) {
    const last = scalesOf(advice).at(-1);
    const worth = weighed.filter((one) => one.worth_it === true);
    if (worth.length > 0) {
        const are = worth.length === 1 ? "is" : "are";
        return `${plural(worth.length, "mitigation")} of the ${count(weighed.length)} that can be done ${are} worth it ${atRanks(last)}, if what ${worth.length === 1 ? "it addresses" : "they address"} really goes away; only a trial tells.`;
    }
    if (weighed.length > 0) {
        const none =
            weighed.length === 1
                ? "the one mitigation that applies does not save"
                : `none of ${count(weighed.length)} mitigations saves`;
        return `No possible mitigation is worth it: ${none} a job half a percent of its time with certainty ${atRanks(last)}.${unsure(weighed, last)}`;
    }
    return all.length > 0
        ? "No mitigation that is possible here addresses this noise. The table lists those that do, and why they are not possible."
        : "No mitigation in the catalogue addresses this noise.";
}

/** Gains that would be large enough, but are not significant. */
function unsure(weighed, scale) {
    const gains = weighed
        .map((one) => effectAt(one, scale))
        .filter((effect) => effect.gain_percent / (100 + effect.before_percent) >= 0.005);
    return gains.length > 0
        ? ` By its mean ${gains.length === 1 ? "one would" : `${count(gains.length)} would`}, but chance is not ruled out: the interval of the gain holds zero. A longer recording may tell.`
        : "";
}

/** The command that tests the recommendation. */
function tryCommand(advice) {
    if (!advice.try_it) {
        return null;
    }
    return element(
        "p",
        {},
        "To test what of it quell can apply by itself, with and without it in turn: ",
        commandLine(clean(advice.try_it), "Copy the command of the trial"),
    );
}

function effectAt(one, scale) {
    return records(one.effects).find((effect) => effect.ranks === scale.ranks) ?? {};
}

function remedyTable(weighed, scale) {
    const shown = weighed.map((one) => effectAt(one, scale));
    const before = Math.max(...shown.map((one) => number(one.before_percent) ?? 0));
    const ends = shown.map((one) => number(list(one.after_ci95_percent)[1]) ?? 0);
    const most = Math.max(before, Math.min(1.3 * before, Math.max(...ends)));
    const columns = [
        remedyColumn((one) => one.why),
        {
            head: "Risk",
            left: true,
            key: (one) => ["low", "medium", "high", "external"].indexOf(one.risk),
            text: (one) => clean(one.risk),
            kind: (one) => `risk ${one.risk === "high" ? "high" : ""}`,
        },
        {
            head: "Here",
            left: true,
            text: (one) => STANDINGS[one.standing] ?? clean(one.standing),
        },
        addressedColumn(),
        ...(weighed.some((one) => one.on_cpus)
            ? [
                  {
                      head: "Job on",
                      left: true,
                      text: (one) => (one.on_cpus ? cpusCalled(one.on_cpus) : "all CPUs"),
                  },
              ]
            : []),
        {
            head: "Left, %",
            hint: "Without all noise that it addresses; below it the 95 % interval",
            key: (one) => number(effectAt(one, scale).after_percent),
            text: (one) => {
                const between = pointsBetween(effectAt(one, scale).after_ci95_percent);
                const beneath =
                    between === NOTHING ? null : element("span", { class: "beneath" }, ` (${between})`);
                return element("span", {}, points(effectAt(one, scale).after_percent), beneath);
            },
        },
        effectGain(scale),
        {
            head: "Now → left",
            left: true,
            text: (one) => effectBar(effectAt(one, scale), most),
            key: (one) => number(effectAt(one, scale).after_percent),
        },
        {
            head: "Worth it",
            left: true,
            hint: "Judged at the last scale",
            text: (one) => (one.worth_it === true ? "✓ yes" : "no"),
            kind: (one) => (one.worth_it === true ? "worth" : "quiet"),
        },
    ];
    const made = table(
        `The slowdown that would remain ${atRanks(scale)} of ${points(before)} %, if a mitigation removes all the noise that it addresses, which is the best case. Whether it is worth it is judged ${scale.at > 0 ? "at the last scale" : "there"}.`,
        columns,
        weighed,
    );
    return asCards(made, columns);
}

/** The gain, with its interval below it. */
function effectGain(scale) {
    const of = (one) => {
        const effect = effectAt(one, scale);
        return [effect.gain_percent, effect.gain_ci95_percent];
    };
    return {
        head: "Gain, points",
        hint: "How much less the slowdown would be; below it the 95 % interval",
        key: (one) => gainOrder(...of(one)),
        text: (one) => {
            const between = pointsBetween(of(one)[1]);
            const beneath =
                between === NOTHING ? null : element("span", { class: "beneath" }, ` (${between})`);
            return element("span", {}, gainOrUnresolved(...of(one)), beneath);
        },
    };
}

/** On a narrow screen, each row becomes a card, in which each value has a label. */
function asCards(made, columns) {
    made.classList.add("remedies");
    made.querySelectorAll("tbody tr").forEach((line) =>
        [...line.children].forEach((cell, at) => (cell.dataset.head = columns[at].head)),
    );
    return made;
}

/** A column with the id, the title below it, and further details from `more`. */
function remedyColumn(more = () => null) {
    return {
        head: "Mitigation",
        left: true,
        kind: () => "name",
        key: (one) => clean(one.id),
        text: (one) =>
            element(
                "span",
                {},
                element("strong", {}, clean(one.id)),
                element("span", { class: "beneath" }, clean(one.title)),
                more(one)
                    ? element("span", { class: "beneath" }, `${STANDINGS[one.standing]}: ${clean(more(one))}`)
                    : null,
            ),
    };
}

function addressedColumn() {
    return {
        head: "Addresses",
        left: true,
        kind: () => "name addressed",
        text: (one) => {
            const names = list(one.addresses).map(clean);
            const more = names.length - MOST_ADDRESSED;
            const shown = names.slice(0, MOST_ADDRESSED).join(", ");
            return element(
                "span",
                more > 0 ? { title: names.slice(0, 40).join(", ") } : {},
                shown === "" ? NOTHING : shown + (more > 0 ? ` +${more}` : ""),
            );
        },
        key: (one) => list(one.addresses).map(clean).join(", "),
    };
}

/** The current slowdown, the slowdown that is left, and its interval. */
function effectBar(effect, most) {
    const place = (value) => `${most > 0 ? Math.min(100, Math.max(0, (100 * value) / most)) : 0}%`;
    const [low, high] = list(effect.after_ci95_percent).map(number);
    const span =
        pointsBetween(effect.after_ci95_percent) === NOTHING
            ? null
            : element("i", {
                  class: "span",
                  style: `left: ${place(low)}; width: calc(${place(high)} - ${place(low)})`,
              });
    return element(
        "span",
        {
            class: "effect",
            role: "img",
            "aria-label": `from ${points(effect.before_percent)} to ${points(effect.after_percent)} %`,
        },
        element("i", { class: "now", style: `width: ${place(effect.before_percent)}` }),
        element("i", { class: "then", style: `width: ${place(effect.after_percent)}` }),
        span,
    );
}

function foldedRemedies(title, rows) {
    if (rows.length === 0) {
        return null;
    }
    const columns = [
        remedyColumn(),
        addressedColumn(),
        {
            head: "% of node",
            key: (one) => number(record(one.node)?.percent),
            text: (one) => fixed(record(one.node)?.percent, 4),
        },
        { head: "Why", left: true, kind: () => "name", text: (one) => clean(one.why) },
    ];
    const shown = filled(columns, rows);
    return element(
        "details",
        {},
        element("summary", {}, `${title} (${count(rows.length)})`),
        asCards(table(`${title}.`, shown, rows), shown),
    );
}
