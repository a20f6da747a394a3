// What if: the reader removes sources, and sees the slowdown that is left.

const LEFT_OVER = { colour: "--series-0", dash: [8, 4], shape: "square" };

/** A checkbox for each source; at first, the costliest one is removed. */
function whatIfSection(advice) {
    const switches = record(advice.what_if);
    const names = list(switches?.sources).map(clean);
    const left = list(switches?.slowdown_percent).map(list);
    const scales = scalesOf(advice);
    const known = left.length === 2 ** names.length && left.every((row) => row.length >= scales.length);
    if (names.length === 0 || !known) {
        return null;
    }
    const boxes = names.map((_, i) => element("input", { type: "checkbox", id: `without-${i}` }));
    boxes[0].checked = true;
    const gone = () => names.filter((_, i) => boxes[i].checked);
    const combination = () => boxes.reduce((sum, box, i) => sum + (box.checked ? 2 ** i : 0), 0);
    const shown = element("p", { class: "lead", role: "status", "aria-live": "polite" });
    const place = element("div");
    const figure =
        scalesUpwards(advice).length > 1
            ? plotFigure("Slowdown over ranks with all noise, and without the removed sources.", () =>
                  whatIfSpec(scalesUpwards(advice), left, combination(), gone()),
              )
            : null;
    const tell = () => {
        shown.textContent = whatIfSentence(scales.at(-1), left, combination(), gone());
        place.replaceChildren(whatIfTable(scales, left, combination(), gone()));
    };
    const change = () => {
        tell();
        if (figure) {
            redraw(figure);
        }
    };
    boxes.forEach((box) => box.addEventListener("change", change));
    tell();
    const switchOf = (name, i) => element("label", { class: "switch", for: boxes[i].id }, boxes[i], name);
    return section(
        "what-if",
        "What if it were gone?",
        element(
            "fieldset",
            { class: "switches" },
            element("legend", {}, "Remove"),
            ...names.map(switchOf),
        ),
        shown,
        figure,
        place,
    );
}

/** `Without tick and ksmd: 12.30 % at 4,096 ranks in place of 17.83 %, 31.0 % less.` */
function whatIfSentence(scale, left, combination, gone) {
    const [now, then] = [left[0][scale.at], left[combination][scale.at]];
    if (gone.length === 0) {
        return `With all noise: ${points(now)} % ${atRanks(scale)}. Remove a source to see what is left.`;
    }
    return `Without ${listed(gone)}: ${points(then)} % ${atRanks(scale)} in place of ${points(now)} %${lessBy(now, then)}.`;
}

function lessBy(now, then) {
    const less = now > 0 ? (100 * (now - then)) / now : 0;
    const text = fixed(Math.abs(less), 1);
    return text === "0.0" ? ", no less" : `, ${text} % ${less > 0 ? "less" : "more"}`;
}

function whatIfTable(scales, left, combination, gone) {
    const columns = [
        { head: "Ranks", ...made((row) => row.ranks, count) },
        { head: "All noise, %", key: (row) => left[0][row.at], text: (row) => points(left[0][row.at]) },
        {
            head: "What is left, %",
            key: (row) => left[combination][row.at],
            text: (row) => points(left[combination][row.at]),
        },
        {
            head: "Less by, points",
            key: (row) => left[0][row.at] - left[combination][row.at],
            text: (row) => points(left[0][row.at] - left[combination][row.at]),
        },
        beyondColumn(),
    ];
    return table(gone.length > 0 ? `Without ${listed(gone)}.` : "With all noise.", columns, scales);
}

/** A column that shows whether the traces support a scale. */
function beyondColumn() {
    return {
        head: "Within the trace",
        left: true,
        text: (row) => (row.supported === false ? "no: extrapolated" : "yes"),
        kind: (row) => (row.supported === false ? "beyond" : ""),
    };
}

function whatIfSpec(scales, left, combination, gone) {
    const places = scales.map((scale) => Math.log2(scale.ranks));
    const row = (number) => scales.map((scale) => left[number][scale.at]);
    const [all, rest] = [row(0), combination > 0 ? row(combination) : scales.map(() => null)];
    const highest = Math.max(...all, ...rest.filter((value) => value !== null));
    const margin = (places.at(-1) - places[0]) * 0.02;
    const limits = scales.filter((scale) => scale.supported !== false).map((scale) => scale.ranks);
    const limit = limits.length < scales.length ? Math.log2(Math.max(1, ...limits)) : Infinity;
    const group = (name, look, series) => ({
        name,
        style: look,
        kind: "line",
        series: [series],
        text: (at, data) => {
            const value = data[series][at[series]];
            return number(value) === null ? null : `${points(value)} %`;
        },
    });
    const without = gone.length > 0 ? [group(`without ${listed(gone)}`, LEFT_OVER, 2)] : [];
    return {
        label: `Slowdown with all noise and with what is left, from ${count(scales[0].ranks)} to ${count(scales.at(-1).ranks)} ranks. The table below has the same numbers.`,
        data: [places, all, rest],
        x: { title: "ranks", log: 2, range: [places[0] - margin, places.at(-1) + margin], text: ranksOfLog },
        y: {
            title: "slowdown",
            range: [Math.min(0, ...all, ...rest), highest > 0 ? highest * 1.08 : 1],
            text: (value) => `${significant(value, 4)} %`,
        },
        series: [
            { ...WHOLE, kind: "line", marks: true },
            { ...LEFT_OVER, kind: "line", marks: true },
        ],
        bands: combination > 0 ? [{ series: [1, 2], colour: LEFT_OVER.colour, share: 0.12 }] : [],
        still: true,
        groups: [group("all noise", WHOLE, 1), ...without],
        at: (place) => `${count(Math.round(2 ** place))} ranks`,
        shade: (u) => shadeBeyond(u, limit),
    };
}
