// A row of the table of mitigations, and its details.

/** Maximum number of places to list for one mitigation. */
const MOST_PLACES = 200;

const HELD = new Map([
    ["cpu-dma-latency", "/dev/cpu_dma_latency, held"],
    ["timestamp-socket", "a socket with time stamps, held"],
]);

const CPUSETS = new Map([
    ["isolated", "cpuset partition quell"],
    ["shield", "cpuset shield quell"],
    ["job", "cpuset quell-job"],
]);

const PROPERTIES = new Map([
    ["affinity", "affinity"],
    ["policy", "policy"],
    ["timer-slack", "timer slack"],
]);

/** The name of a place, as on the terminal. */
function placeName(place) {
    switch (record(place)?.kind) {
        case "file":
        case "drop-in":
            return clean(place.path);
        case "irq":
            return `irq ${clean(place.number)} (${clean(place.name)})`;
        case "thread": {
            const property = PROPERTIES.get(place.property) ?? clean(place.property);
            return `${property} of ${clean(place.comm)} (${clean(place.pid)})`;
        }
        case "unit":
            return `unit ${clean(place.name)}`;
        case "held":
            return HELD.get(place.what) ?? `${clean(place.what)}, held`;
        case "cpuset":
            return CPUSETS.get(place.what) ?? `cpuset ${clean(place.what)}`;
        default:
            return clean(record(place)?.kind);
    }
}

/** The value of a place, with its line breaks. */
function placeValue(value) {
    if (value === null || value === undefined) {
        return "?";
    }
    const text = String(value).replace(/\s+$/, "");
    return text === ""
        ? "(empty)"
        : text
              .split("\n")
              .map((line) => (line === "" ? "" : clean(line)))
              .join("\n");
}

/** Number of rows so far, for unique ids. */
let mitigationRows = 0;

/** A row, and its details, which are built when the row is first opened. */
function mitigationEntry(row, columns, largest, link, changed) {
    const name = `mitigation-${(mitigationRows += 1)}`;
    const button = element(
        "button",
        { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": name },
        element("span", { class: "id" }, clean(row.id)),
        " ",
        element("span", { class: "title" }, clean(row.title)),
    );
    const line = element(
        "tr",
        { role: "row", class: `mitigation ${known(MITIGATION_STATES, row.state)}` },
        ...columns.map((column) => mitigationCell(column, row, button, largest)),
    );
    const room = element("td", { role: "cell", colspan: columns.length });
    const detail = element("tr", { role: "row", class: "detail", id: name, hidden: "" }, room);
    let text = null;

    const isOpen = () => button.getAttribute("aria-expanded") === "true";
    const open = (wanted) => {
        if (wanted && room.childNodes.length === 0) {
            room.append(part(clean(row.id), () => mitigationDetail(row, link)));
        }
        button.setAttribute("aria-expanded", String(wanted));
        detail.hidden = !wanted || line.hidden;
    };
    const show = (wanted) => {
        line.hidden = !wanted;
        detail.hidden = !wanted || !isOpen();
    };
    line.addEventListener("click", (event) => {
        const chosen = String(getSelection());
        if (chosen === "" || button.contains(event.target)) {
            open(!isOpen());
            changed();
        }
    });
    return { row, line, detail, button, open, show, isOpen, text: () => (text ??= searched(row)) };
}

/** The text that a search covers. */
function searched(row) {
    const places = records(row.places).map((placeState) => placeName(placeState.place));
    const hands = records(row.by_hand).map((hand) => hand.todo);
    const words = [
        row.id,
        row.title,
        row.category,
        row.what,
        row.caveat,
        row.ibm,
        ...list(row.patterns),
        ...places,
        ...hands,
    ];
    return words.filter(Boolean).join("\n").toLowerCase();
}

function mitigationCell(column, row, button, largest) {
    const noise = noiseOf(row);
    const kind = [column.kind, column.left ? "words" : "", measured(column) && !noise ? "no" : ""]
        .join(" ")
        .trim();
    const cell = (...children) => element("td", { role: "cell", class: kind }, ...children);
    switch (column.kind) {
        case "at-state":
            return cell(stateLabel(row.state));
        case "at-name":
            return element("th", { role: "rowheader", scope: "row", class: `${kind} name` }, button);
        case "at-risk":
            return cell(
                element(
                    "span",
                    {
                        class: `risk ${known(MITIGATION_RISKS, row.risk)}`,
                        title: MITIGATION_RISKS.get(row.risk),
                    },
                    clean(row.risk),
                ),
            );
        case "at-category":
            return cell(clean(row.category));
        case "at-noise": {
            const bar = element("i", { class: "thin", "aria-hidden": "true" }, element("i", {}));
            bar.firstChild.style.width = `${noise && largest > 0 ? (100 * noise.percent) / largest : 0}%`;
            return noise ? cell(fixed(noise.percent, 4), bar) : cell(NOTHING);
        }
        case "at-times":
            return cell(noise ? count(noise.count) : NOTHING);
        default:
            return cell(noise ? duration(noise.max_ns) : NOTHING);
    }
}

/** The details of a row. */
function mitigationDetail(row, link) {
    const patterns = list(row.patterns).map((pattern) => element("code", {}, clean(pattern)));
    const hands = records(row.by_hand);
    const placeStates = records(row.places);
    const entries = [
        ["Why", row.why ? asSentence(row.why) : null],
        ["Gone", row.gone ? asSentence(row.gone) : null],
        ["Today", row.successor ? link(row.successor) : null],
        ["What", row.what ? clean(row.what) : null],
        ["Mind", row.caveat ? clean(row.caveat) : null, "mind"],
        ["Takes away", patterns.length > 0 ? element("span", { class: "patterns" }, ...patterns) : null],
        ["Places", placeStates.length > 0 ? placeList(placeStates) : null],
        ["By hand", hands.length > 0 ? element("ul", { class: "hands" }, ...hands.map(handItem)) : null],
        ["Plan", planOf(row)],
        ["IBM's page", row.ibm ? clean(row.ibm) : null],
        [
            "From",
            list(row.provenance).length > 0
                ? element(
                      "ul",
                      { class: "from" },
                      ...row.provenance.map((from) => element("li", {}, clean(from))),
                  )
                : null,
        ],
    ];
    const items = entries
        .filter(([, value]) => value !== null)
        .map(([name, value, kind]) =>
            element("div", { class: kind ?? "" }, element("dt", {}, name), element("dd", {}, value)),
        );
    return element("dl", { class: "details-list" }, ...items);
}

/** A reason, formatted as a sentence. */
function asSentence(text) {
    const shown = clean(text).trim() || NOTHING;
    const end = /[.!?]$/.test(shown) ? "" : ".";
    // The program's name stays in lower case.
    return (shown.startsWith("quell") ? shown : shown[0].toUpperCase() + shown.slice(1)) + end;
}

function handItem(hand) {
    const [mark, word] =
        hand.done === true
            ? ["applied", "done"]
            : hand.done === false
              ? ["not-applied", "to do"]
              : ["cannot-tell", "quell cannot see whether it is done"];
    const seen = hand.seen ? `${word}: ${clean(hand.seen)}` : word;
    return element(
        "li",
        {},
        marked(clean(hand.todo)),
        element("span", { class: `state note ${mark}` }, stateMark(mark), seen),
    );
}

/** Text in which parts between backquotes are shown as code. */
function marked(text) {
    const pieces = text.split("`");
    // An unpaired backquote is plain text.
    const paired = pieces.length % 2 === 1;
    return element(
        "span",
        {},
        ...(paired ? pieces.map((piece, at) => (at % 2 === 1 ? element("code", {}, piece) : piece)) : [text]),
    );
}

function placeList(placeStates) {
    const wrong = (placeState) => Number(placeState.done === true);
    const shown = [...placeStates].sort((a, b) => wrong(a) - wrong(b)).slice(0, MOST_PLACES);
    const done = placeStates.filter((placeState) => placeState.done).length;
    const rest = placeStates.length - shown.length;
    const refusable = placeStates.some((placeState) => placeState.may_fail && !placeState.done && !placeState.immovable);
    const sums = [
        ...(placeStates.length > 1 ? [`${count(done)} of ${count(placeStates.length)} are as wanted.`] : []),
        ...(refusable
            ? [placeStates.length > 1 ? "The kernel may refuse some." : "The kernel may refuse it."]
            : []),
    ];
    const sum = sums.length > 0 ? element("p", { class: "note" }, sums.join(" ")) : null;
    const more =
        rest > 0
            ? element("p", { class: "note" }, `And ${count(rest)} more: quell tune audit ID lists them.`)
            : null;
    const items = element("ul", { class: "places" }, ...shown.map(placeItem));
    const scroll =
        shown.length > 12
            ? element("div", { class: "many", role: "region", "aria-label": "Places", tabindex: "0" }, items)
            : items;
    return element("div", {}, sum, scroll, more);
}

function placeItem(placeState) {
    const [mark, word] = markOf(placeState);
    const lines = [placeState.now, placeState.want].some((text) => placeValue(text).includes("\n"));
    const hasWant = placeState.want !== null && placeState.want !== undefined;
    const value = (text, kind) => element("code", { class: kind }, placeValue(text));
    const values =
        placeState.done || !hasWant
            ? [value(placeState.now, "now")]
            : [
                  value(placeState.now, "now"),
                  element("span", { class: "to", role: "img", "aria-label": "wanted" }, "→"),
                  value(placeState.want, "want"),
              ];
    const others = list(placeState.group)
        .filter((path) => path !== record(placeState.place)?.path)
        .map(clean);
    const notes = [
        placeState.why ? clean(placeState.why) : null,
        placeState.immovable && !placeState.why ? "the kernel does not let anyone change it" : null,
        placeState.staged ? "in force after the next boot, or when what reads it starts again" : null,
        others.length > 0 ? `changes with ${others.join(", ")}` : null,
        list(placeState.overruled_by).length > 0
            ? `set otherwise, and later, by ${placeState.overruled_by.map(clean).join(", ")}`
            : null,
    ].filter(Boolean);
    return element(
        "li",
        {},
        element("span", { class: `state ${mark}` }, stateMark(mark), word),
        element(
            "div",
            { class: lines ? "place lines" : "place" },
            element("span", { class: "where" }, placeName(placeState.place)),
            element("span", { class: "values" }, ...values),
            notes.length > 0 ? element("span", { class: "note" }, notes.join("; ")) : null,
        ),
    );
}

/** The mark and the name of a place's state. */
function markOf(placeState) {
    if (placeState.done) {
        return ["applied", "as wanted"];
    }
    if (placeState.now === null || placeState.now === undefined) {
        return ["cannot-tell", "not seen"];
    }
    if (placeState.immovable) {
        return ["not-here", "fixed"];
    }
    return placeState.want === null || placeState.want === undefined
        ? ["cannot-tell", "not judged"]
        : ["not-applied", "to change"];
}

/** The command that plans this mitigation, with a button to copy it; or why there is none. */
function planOf(row) {
    const id = String(row.id ?? "");
    // Only ids without characters that are special to a shell.
    if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(id)) {
        return null;
    }
    const options = planOptions(row, id);
    if (options === null) {
        return element("span", { class: "quiet" }, whyNoPlan(row));
    }
    return commandLine(
        ["quell tune plan", id, ...options, "-o PLAN"].join(" "),
        `Copy the command for ${id}`,
    );
}

/** The options that the command needs in addition to the id, for a plan that writes something; null if no plan does. */
function planOptions(row, id) {
    const why = String(row.why ?? "");
    if (row.risk === "external") {
        return null;
    }
    if (row.state === "cannot-tell") {
        const given = [
            ...(why.includes("--pid") ? ["--pid PID"] : []),
            ...(why.includes("--set") ? [`--set ${id}=VALUE`] : []),
        ];
        return given.length > 0 ? given : null;
    }
    if (row.state !== "not-applied" && row.state !== "partial") {
        return null;
    }
    const known = (value) => value !== null && value !== undefined;
    const same = (placeState) => placeValue(placeState.now) === placeValue(placeState.want);
    const writes = records(row.places).filter(
        (placeState) =>
            !placeState.done &&
            !placeState.immovable &&
            known(placeState.now) &&
            known(placeState.want) &&
            !(placeState.staged && same(placeState)),
    );
    if (writes.length === 0) {
        return null;
    }
    // Changes that take effect only after a reboot need a persistent plan.
    return writes.every((placeState) => placeState.staged) ? ["--persist"] : [];
}

function whyNoPlan(row) {
    if (row.risk === "external") {
        return "It cannot be changed from this machine.";
    }
    switch (row.state) {
        case "applied":
            return "It is on already.";
        case "not-here":
            return "There is nothing to write on this machine.";
        case "not-mounted":
            return "Its file system is not mounted, so a plan would write nothing.";
        case "not-readable":
        case "cannot-tell":
            return "The state is unknown, so a plan would write nothing.";
        default:
            return records(row.by_hand).length > 0
                ? "A plan would write nothing: this is done by hand."
                : "A plan would write nothing.";
    }
}
