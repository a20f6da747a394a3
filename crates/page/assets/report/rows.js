// Tables of rows that the program describes: titles, units, digits and meanings of the columns are part of the data.

let described = {};

/** Stores the descriptions of columns, by kind of row. */
function describe(columns) {
    described = record(columns) ?? {};
}

/** The columns of a kind of row, as `table` takes them: the first text column comes first, because it names the row. `how` gives, by title
 * or field, what a page does differently: a column's properties, or null to leave it out. */
function columnsOf(kind, how = {}) {
    const other = (one) => (how[one.title] === undefined ? how[one.field] : how[one.title]);
    const shown = list(described[kind]).filter((one) => one.importance !== "data" && other(one) !== null);
    const first = shown.find((one) => one.unit === "name");
    return [...(first ? [first] : []), ...shown.filter((one) => one !== first)].map((one) => ({
        field: one.field,
        head: capital(one.title),
        hint: one.meaning,
        left: one.unit === "words" || one.unit === "name" || one.unit === "flag",
        kind: () => (one.unit === "name" ? "name" : ""),
        key: (row) => orderOf(valueOf(row, one)),
        text: (row) => textOf(one, valueOf(row, one)),
        ...other(one),
    }));
}

/** A table of described rows; columns without any value are left out. */
function rowTable(kind, caption, rows, how = {}) {
    return table(caption, filled(columnsOf(kind, how), rows), rows);
}

/** The properties of a column whose value a page computes from the row. */
function made(value, show) {
    return { key: (row) => number(value(row)), text: (row) => show(value(row)) };
}

/** A text with its first letter in upper case. */
function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The value of a column, which may be in an object within the row. */
function valueOf(row, one) {
    const value = one.field.split(".").reduce((within, name) => record(within)?.[name], row);
    return one.zero && value === 0 ? null : value;
}

/** The sort key of a value; for an interval, its lower end. */
function orderOf(value) {
    return Array.isArray(value) ? number(value[0]) : typeof value === "number" ? number(value) : value;
}

/** A value in the format of its column. */
function textOf(one, value) {
    if (value === null || value === undefined) {
        return one.absent === "-" ? NOTHING : one.absent;
    }
    switch (one.kind) {
        case "interval":
            if (one.unit === "points") {
                return pointsBetween(value);
            }
            return list(value).map((end) => numberText(one, end)).join(" – ") || NOTHING;
        case "flag":
            return one.yes_no[value === true ? 0 : 1];
        case "text":
            return clean(value);
        default:
            return numberText(one, value);
    }
}

function numberText(one, value) {
    const shown = plainText(one, value);
    const plus = one.plus && value > 0 ? "+" : "";
    return shown === NOTHING ? NOTHING : plus + shown + one.suffix;
}

function plainText(one, value) {
    switch (one.unit) {
        case "time":
            return duration(value);
        case "count":
            return count(value);
        case "id":
            return clean(value);
        case "points":
            return points(value);
        default:
            return fixed(value, one.precision);
    }
}
