// Elements and tables. Text is always inserted as a text node, never as HTML.

/** An element with properties, and children that are elements or text. */
function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
        if (key === "class") {
            made.className = value;
        } else if (value !== null && value !== undefined) {
            made.setAttribute(key, value);
        }
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
}

/** An SVG shape of a small drawing. */
function shapeElement(tag, properties) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(properties).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
}

/** A section of the page with its heading; `id` identifies both. */
function section(id, title, ...children) {
    const heading = element("h2", { id: `${id}-title` }, title);
    return element("section", { id, "aria-labelledby": heading.id }, heading, ...children);
}

/** A paragraph. */
function paragraph(text, kind = null) {
    return element("p", { class: kind ?? "" }, text);
}

/** A list of terms with their values; entries without a value are left out. */
function pairs(kind, entries) {
    const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== NOTHING);
    const items = shown.map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, value)),
    );
    return element("dl", { class: kind }, ...items);
}

/** Number of tables so far, for unique ids. */
let tables = 0;
/** Number of rows above which a table scrolls, until all are asked for. */
const MOST_SHOWN = 24;
/** Number of rows above which the others are made only when all are asked for. */
const MOST_MADE = 500;

/**
 * A table that sorts by a click on a header.
 *
 * A column has `head`, `text(row)`, and may have `key(row)` (what it sorts by; else the text), `hint` (what the
 * header means), `left` (words rather than numbers) and `kind(row)` (a class of the cell). The first column names
 * the row.
 */
function table(caption, columns, rows) {
    const body = element("tbody");
    const heads = columns.map((column, at) => headCell(column, () => sortBy(at)));
    const sorted = [...rows];
    let most = MOST_MADE;
    fill();

    function fill() {
        body.replaceChildren(...sorted.slice(0, most).map((row) => tableLine(columns, row)));
    }

    function sortBy(at) {
        const upwards = heads[at].getAttribute("aria-sort") !== "ascending";
        heads.forEach((head) => head.removeAttribute("aria-sort"));
        heads[at].setAttribute("aria-sort", upwards ? "ascending" : "descending");
        const key = columns[at].key ?? columns[at].text;
        sorted.sort((a, b) => byValue(key(a), key(b), upwards));
        fill();
    }

    const name = element("p", { class: "caption", id: `table-${(tables += 1)}` }, caption);
    const head = element("thead", {}, element("tr", {}, ...heads));
    const made = element("table", { "aria-labelledby": name.id }, head, body);
    const scroll = element("div", { class: "scroll", role: "region", "aria-labelledby": name.id, tabindex: "0" }, made);
    const all = showAll(rows.length, MOST_SHOWN, "row", (isAll) => {
        scroll.classList.toggle("long", !isAll);
        most = isAll ? rows.length : MOST_MADE;
        fill();
    });
    scroll.classList.toggle("long", all !== null);
    return element("div", { class: "tabular" }, name, scroll, all);
}

/** A button that shows all of many things, or again only some of them; null if there are no more than `most`. `show` is called with whether
 * all are wanted. */
function showAll(total, most, noun, show) {
    if (total <= most) {
        return null;
    }
    const button = element("button", { type: "button", "aria-expanded": "false", class: "show-all" });
    const name = (isAll) => (isAll ? "Show fewer" : `Show all ${plural(total, noun)}`);
    button.textContent = name(false);
    button.addEventListener("click", () => {
        const isAll = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(isAll));
        button.textContent = name(isAll);
        show(isAll);
    });
    return button;
}

/** Bars below one another: `draw` makes those of some entries, the first `most` ones until all are asked for. */
function lanes(entries, most, noun, draw) {
    const room = element("div", { class: "lanes" });
    const show = (isAll) => room.replaceChildren(...draw(isAll ? entries : entries.slice(0, most)));
    show(false);
    return [room, showAll(entries.length, most, noun, show)];
}

/** Compares two values; absent values come last in both directions. */
function byValue(a, b, upwards) {
    const absent = (value) => value === null || value === undefined;
    if (absent(a) || absent(b)) {
        return Number(absent(a)) - Number(absent(b));
    }
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return upwards ? order : -order;
}

function headCell(column, sort) {
    const button = element("button", { type: "button", title: column.hint }, column.head);
    button.addEventListener("click", sort);
    return element("th", { scope: "col", class: column.left ? "words" : "" }, button);
}

function tableLine(columns, row) {
    const cells = columns.map((column, at) => {
        const kind = [column.left ? "words" : "", column.kind?.(row) ?? ""].join(" ").trim();
        return at === 0
            ? element("th", { scope: "row", class: kind }, column.text(row))
            : element("td", { class: kind }, column.text(row));
    });
    return element("tr", {}, ...cells);
}

/** The columns that have a value in at least one row. */
function filled(columns, rows) {
    return columns.filter((one) => rows.some((row) => one.text(row) !== NOTHING));
}

/** A command with a button that copies it. */
function commandLine(text, label) {
    const command = element("code", { tabindex: "0" }, text);
    const copy = element("button", { type: "button", "aria-label": label }, "Copy");
    const shown = element("span", { class: "quiet", role: "status" });
    copy.addEventListener("click", () => copyText(command).then((how) => (shown.textContent = how)));
    return element("span", { class: "command" }, command, copy, shown);
}

/** Copies an element's text; if the browser does not permit that, selects it. */
async function copyText(from) {
    try {
        await navigator.clipboard.writeText(from.textContent);
        return "copied";
    } catch {
        getSelection().selectAllChildren(from);
        return "selected, to be copied";
    }
}
