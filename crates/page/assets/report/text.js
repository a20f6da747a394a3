"use strict";

// Formats values for display. Everything from the data passes through one of these functions before it is shown.

const NOTHING = "–";

/** A finite number, or null. */
function number(value) {
    return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** An array, or an empty one. */
function list(value) {
    return Array.isArray(value) ? value : [];
}

/** An object, or null. */
function record(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
}

/** The objects of an array. */
function records(value) {
    return list(value).filter((one) => record(one) !== null);
}

/** Text of unknown origin: control characters, and those that change the writing direction, become visible. */
function clean(value) {
    if (value === null || value === undefined || value === "") {
        return NOTHING;
    }
    return String(value).replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

/** A count: `1,234,567`. */
function count(value) {
    return number(value) === null ? NOTHING : Math.round(value).toLocaleString("en-US");
}

/** A number with the given number of decimals. */
function fixed(value, decimals) {
    if (number(value) === null) {
        return NOTHING;
    }
    return value.toLocaleString("en-US", {
        minimumFractionDigits: decimals,
        maximumFractionDigits: decimals,
    });
}

/** A number with at most the given number of significant digits. */
function significant(value, digits) {
    if (number(value) === null) {
        return NOTHING;
    }
    const small = value !== 0 && Math.abs(value) < 1e-6;
    const shown = small
        ? value.toExponential(digits - 1)
        : value.toLocaleString("en-US", { maximumSignificantDigits: digits });
    return shown.replace(/^-/, "−");
}

/** A time in ns: `250ns`, `14.2us`, `1ms`, `10s`. */
function duration(value) {
    if (number(value) === null) {
        return NOTHING;
    }
    const ns = Number(Math.abs(value).toPrecision(4));
    const sign = value < 0 && ns > 0 ? "−" : "";
    const [divisor, unit] =
        ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "us"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const shown = ns < 10 ? Number(ns.toFixed(1)) : Number((ns / divisor).toPrecision(4));
    return sign + (shown >= 1e4 ? count(shown) : String(shown)) + unit;
}

/** A time, given its logarithm, for labels of a logarithmic axis. */
function durationOfLog(log10) {
    return duration(10 ** log10);
}

/** A number of ranks, given its logarithm, for an axis: `16`, `4Ki`, `1Mi`. */
function ranksOfLog(log2) {
    const ranks = 2 ** log2;
    const [divisor, unit] = ranks >= 2 ** 20 ? [2 ** 20, "Mi"] : ranks >= 2 ** 10 ? [2 ** 10, "Ki"] : [1, ""];
    return significant(ranks / divisor, 3) + unit;
}

/** A point in time, to the second, in UTC. */
function instant(value) {
    const date = new Date(value);
    return Number.isNaN(date.getTime())
        ? clean(value)
        : date.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

/** `1 CPU`, `2 CPUs`. */
function plural(n, one, many = one + "s") {
    return `${count(n)} ${n === 1 ? one : many}`;
}

/** The name of a row's CPU, or of the recording if the row is for one. */
function cpuName(row) {
    if (row.name !== undefined) {
        return clean(row.name);
    }
    return `CPU ${clean(row.cpu)}`;
}

/** CPU numbers as `0-3,8`. */
function cpuList(cpus) {
    const sorted = cpus.filter(Number.isInteger).sort((a, b) => a - b);
    if (sorted.length < cpus.length) {
        return cpus.map(clean).join(",");
    }
    const runs = [];
    for (const cpu of sorted) {
        const run = runs.at(-1);
        if (run && cpu <= run[1] + 1) {
            run[1] = cpu;
        } else {
            runs.push([cpu, cpu]);
        }
    }
    return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/** The numbers in `0-3,8`; null if the text is no such list. */
function parseCpuList(text) {
    const cpus = new Set();
    for (const part of text.split(",").map((piece) => piece.trim())) {
        const match = /^(\d{1,5})(?:\s*-\s*(\d{1,5}))?$/.exec(part);
        if (!match) {
            return null;
        }
        const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
        for (let cpu = from; cpu <= to; cpu += 1) {
            cpus.add(cpu);
        }
    }
    return [...cpus];
}
