// The table of mitigations, and its filters.

/** Whether a column holds measured noise. */
function measured(column) {
    return column.downwards === true;
}

function auditColumns(rows) {
    const state = [...MITIGATION_STATES.keys()];
    const risk = [...MITIGATION_RISKS.keys()];
    const noise = (head, kind, hint, field) => ({
        head,
        kind,
        hint,
        key: (row) => number(noiseOf(row)?.[field]),
        downwards: true,
    });
    const columns = [
        { head: "State", kind: "at-state", left: true, key: (row) => state.indexOf(row.state) },
        { head: "Mitigation", kind: "at-name", left: true, key: (row) => clean(row.id) },
        { head: "Risk", kind: "at-risk", left: true, key: (row) => risk.indexOf(row.risk) },
        { head: "Category", kind: "at-category", left: true, key: (row) => clean(row.category) },
    ];
    const figures = [
        noise("Noise %", "at-noise", "Of the time watched on all CPUs", "percent"),
        noise("Times", "at-times", "Intervals of the noise that it addresses", "count"),
        noise("Longest", "at-longest", "The longest of them", "max_ns"),
    ];
    return rows.some(noiseOf) ? [...columns, ...figures] : columns;
}

/** The table with its filters, and a function that links to its rows. */
function mitigationTable(audit) {
    const rows = records(audit.mitigations);
    const columns = auditColumns(rows);
    const largest = Math.max(0, ...rows.map((row) => number(noiseOf(row)?.percent) ?? 0));
    const body = element("tbody", { role: "rowgroup" });
    const byId = new Map();
    const link = (id) => rowLink(id, byId, (entry) => reach(entry));
    const entries = rows.map((row) => mitigationEntry(row, columns, largest, link, keep));
    entries.forEach((entry) => byId.set(String(entry.row.id), entry));
    // Mitigations that do not exist on this machine come last, as on the terminal; the others are in the document's order.
    const lastly = (entry) => Number(entry.row.state === "not-here");

    const heads = columns.map((column) =>
        headCell(column, () => sortBy(column, sorted.at === column ? !sorted.up : !column.downwards)),
    );
    heads.forEach((head, at) => {
        head.setAttribute("role", "columnheader");
        head.classList.add(columns[at].kind);
    });
    let sorted = { at: null, up: false };
    let applying = false;
    const filters = auditFilters(entries, show);
    const none = paragraph("No mitigation is so.", "absent");
    const openAll = element("button", { type: "button" });
    openAll.addEventListener("click", () => {
        const shown = entries.filter((entry) => !entry.line.hidden);
        const open = !shown.every((entry) => entry.isOpen());
        shown.forEach((entry) => entry.open(open));
        keep();
    });

    function sortBy(column, up) {
        sorted = { at: column, up };
        heads.forEach((head, at) => {
            if (columns[at] === column) {
                head.setAttribute("aria-sort", up ? "ascending" : "descending");
            } else {
                head.removeAttribute("aria-sort");
            }
        });
        const order = [...entries].sort((a, b) =>
            column === null ? lastly(a) - lastly(b) : byValue(column.key(a.row), column.key(b.row), up),
        );
        body.append(...order.flatMap((entry) => [entry.line, entry.detail]));
        keep();
    }

    function show() {
        for (const entry of entries) {
            entry.show(filters.shows(entry));
        }
        const shown = entries.filter((entry) => !entry.line.hidden).length;
        none.hidden = shown > 0;
        made.hidden = shown === 0;
        keep();
    }

    /** Opens a row, and clears filters that hide it. */
    function reach(entry) {
        if (entry.line.hidden) {
            filters.set(new URLSearchParams());
            show();
        }
        entry.open(true);
        keep();
        entry.button.focus({ preventScroll: true });
        entry.line.scrollIntoView({ block: "start" });
    }

    /** Stores the selection in the address, if the browser permits it. */
    function keep() {
        const shown = entries.filter((entry) => !entry.line.hidden);
        const open = shown.length > 0 && shown.every((entry) => entry.isOpen());
        openAll.textContent = open ? "Close all" : "Open all";
        openAll.hidden = shown.length === 0;
        if (applying) {
            return;
        }
        const chosen = filters.chosen();
        if (sorted.at !== null) {
            chosen.set("sort", `${sorted.at.kind.slice(3)}${sorted.up ? "" : "-down"}`);
        }
        const opened = entries.filter((entry) => entry.isOpen()).map((entry) => String(entry.row.id));
        if (opened.length > 0 && opened.length <= 8) {
            chosen.set("open", opened.join(","));
        }
        try {
            const hash = chosen.toString();
            history.replaceState(null, "", hash === "" ? location.href.replace(/#.*$/, "") : `#${hash}`);
        } catch {
            // The page works without it.
        }
    }

    /** Restores the selection from the address. */
    function restore() {
        applying = true;
        const chosen = new URLSearchParams(location.hash.slice(1));
        filters.set(chosen);
        show();
        const [, name, down] = /^([a-z]+?)(-down)?$/.exec(chosen.get("sort") ?? "") ?? [];
        const column = columns.find((one) => one.kind === `at-${name}`) ?? null;
        sortBy(column, column !== null && !down);
        const open = (chosen.get("open") ?? "")
            .split(",")
            .map((id) => byId.get(id))
            .filter(Boolean);
        open.forEach((entry) => entry.open(true));
        applying = false;
        if (open.length === 1) {
            requestAnimationFrame(() => reach(open[0]));
        }
        keep();
    }

    const noisy = rows.some(noiseOf);
    const caption = noisy
        ? "Ordered by the noise that each addresses, largest first, with mitigations for other machines last. Click a row to open it."
        : "Ordered by id, with mitigations for other machines last. Click a row to open it.";
    const name = element("p", { class: "caption", id: `table-${(tables += 1)}` }, caption);
    const made = element(
        "table",
        { role: "table", class: "mitigations", "aria-labelledby": name.id },
        element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads)),
        body,
    );
    addEventListener("hashchange", restore);
    restore();
    filters.element.append(openAll);
    const whole = section("mitigations", "Mitigations", name, filters.element, filters.status, made, none);
    return { section: whole, link };
}

/** A link to a mitigation's row; only its id if the page has no such row. */
function rowLink(id, byId, reach) {
    if (!byId.has(String(id))) {
        return element("code", {}, clean(id));
    }
    const made = element("a", { href: `#${new URLSearchParams({ open: String(id) })}` }, clean(id));
    made.addEventListener("click", (event) => {
        if (!(event.ctrlKey || event.metaKey || event.shiftKey)) {
            event.preventDefault();
            reach(byId.get(String(id)));
        }
    });
    return made;
}

/** The filters: search text, selected states (none means all), a risk, a category. */
function auditFilters(entries, changed) {
    const search = element("input", {
        type: "search",
        placeholder: "id, words, path, interrupt",
        spellcheck: "false",
        autocomplete: "off",
    });
    const states = [...MITIGATION_STATES.keys()].filter((state) =>
        entries.some((entry) => entry.row.state === state),
    );
    const chips = states.map((state) => {
        const tally = element("span", { class: "tally" });
        const chip = element(
            "button",
            {
                type: "button",
                class: "chip",
                "aria-pressed": "false",
                title: MITIGATION_STATES.get(state)[1],
            },
            stateLabel(state),
            tally,
        );
        chip.addEventListener("click", () => {
            chip.setAttribute("aria-pressed", String(!pressed(chip)));
            update();
        });
        return { state, chip, tally };
    });
    const risk = choiceOf("risk", "any risk", [...MITIGATION_RISKS.keys()], entries);
    const categories = [...new Set(entries.map((entry) => String(entry.row.category)))].sort();
    const category = choiceOf("category", "any category", categories, entries);
    const clear = element("button", { type: "button" }, "Clear");
    const status = element("p", { class: "caption", role: "status" });
    const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
    const chosenStates = () => chips.filter(({ chip }) => pressed(chip)).map(({ state }) => state);
    const words = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const besidesState = (entry, wanted) =>
        (risk.value === "" || entry.row.risk === risk.value) &&
        (category.value === "" || entry.row.category === category.value) &&
        wanted.every((word) => entry.text().includes(word));

    const shows = (entry) => {
        const chosen = chosenStates();
        return (chosen.length === 0 || chosen.includes(entry.row.state)) && besidesState(entry, words());
    };
    function tell() {
        const wanted = words();
        const fits = entries.filter((entry) => besidesState(entry, wanted));
        chips.forEach(({ state, tally }) => {
            tally.textContent = count(fits.filter((entry) => entry.row.state === state).length);
        });
        const shown = entries.filter(shows).length;
        const all = shown === entries.length;
        const by = [
            ...(wanted.length > 0 ? [`“${clean(search.value.trim())}”`] : []),
            ...(chosenStates().length > 0 ? [chosenStates().map(stateWord).join(" or ")] : []),
            ...(risk.value ? [`${risk.value} risk`] : []),
            ...(category.value ? [clean(category.value)] : []),
        ];
        clear.hidden = by.length === 0;
        status.textContent =
            by.length === 0
                ? `All ${plural(entries.length, "mitigation")}.`
                : `${all ? "All" : `${count(shown)} of`} ${plural(entries.length, "mitigation")}: ${by.join(", ")}.`;
    }
    function update() {
        tell();
        changed();
    }
    search.addEventListener("input", update);
    risk.addEventListener("change", update);
    category.addEventListener("change", update);
    clear.addEventListener("click", () => {
        set(new URLSearchParams());
        changed();
        search.focus();
    });
    function set(chosen) {
        search.value = chosen.get("q") ?? "";
        const wanted = (chosen.get("state") ?? "").split(",");
        chips.forEach(({ state, chip }) => chip.setAttribute("aria-pressed", String(wanted.includes(state))));
        choose(risk, chosen.get("risk"));
        choose(category, chosen.get("category"));
        tell();
    }
    function chosen() {
        const given = [
            ["q", search.value.trim()],
            ["state", chosenStates().join(",")],
            ["risk", risk.value],
            ["category", category.value],
        ];
        return new URLSearchParams(given.filter(([, value]) => value !== ""));
    }
    const made = element(
        "div",
        { class: "filters", role: "search", "aria-label": "Mitigations" },
        element("label", { class: "search" }, element("span", {}, "Search"), search),
        risk,
        category,
        element(
            "div",
            { class: "chips", role: "group", "aria-label": "State" },
            ...chips.map(({ chip }) => chip),
        ),
        clear,
    );
    return { element: made, status, shows, set, chosen };
}

/** A selector for one value of a field, or for any. */
function choiceOf(field, any, values, entries) {
    const options = values
        .map((value) => [value, entries.filter((entry) => String(entry.row[field]) === value).length])
        .filter(([, found]) => found > 0)
        .map(([value, found]) => element("option", { value }, `${clean(value)} (${found})`));
    return element(
        "select",
        { "aria-label": field[0].toUpperCase() + field.slice(1) },
        element("option", { value: "" }, any),
        ...options,
    );
}

function choose(select, value) {
    select.value = value ?? "";
    if (select.selectedIndex < 0) {
        select.value = "";
    }
}
