// Tables of rows that the program describes: titles, units, digits and meanings of their columns come with the data.

let described = {};

/** Takes the descriptions, by kind of row. */
function describe(columns) {
    described = record(columns) ?? {};
}

/**
 * The columns of a kind of row, as `table` takes them. `how` says, by field, what a page does otherwise: a column's
 * properties, or null to leave it out.
 */
function columnsOf(kind, how = {}) {
    return list(described[kind])
        .filter((one) => one.importance !== "data" && how[one.field] !== null)
        .map((one) => ({
            head: one.title.charAt(0).toUpperCase() + one.title.slice(1),
            hint: one.meaning,
            left: one.unit === "words" || one.unit === "name" || one.unit === "flag",
            kind: () => (one.unit === "name" ? "name" : ""),
            key: (row) => orderOf(valueOf(row, one)),
            text: (row) => textOf(one, valueOf(row, one)),
            ...how[one.field],
        }));
}

/** A table of described rows; columns without any value are left out. */
function rowTable(kind, caption, rows, how = {}) {
    return table(caption, filled(columnsOf(kind, how), rows), rows);
}

/** The value of a column, which may stand in an object within the row. */
function valueOf(row, one) {
    const value = one.field.split(".").reduce((within, name) => record(within)?.[name], row);
    return one.zero && value === 0 ? null : value;
}

/** What a value sorts by: an interval by its lower end. */
function orderOf(value) {
    return Array.isArray(value) ? number(value[0]) : typeof value === "number" ? number(value) : value;
}

/** A value as its column writes it. */
function textOf(one, value) {
    if (value === null || value === undefined) {
        return one.absent === "-" ? NOTHING : one.absent;
    }
    switch (one.kind) {
        case "interval":
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
    switch (one.unit) {
        case "time":
            return duration(value);
        case "count":
            return count(value);
        default:
            return fixed(value, one.precision);
    }
}
