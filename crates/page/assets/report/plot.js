// Plots. Each can be redrawn at any time: for another theme, for print, for other CPUs.
//
// Logarithmic axes are linear axes of logarithms, so that labels and grid can be chosen here.

const plots = [];
/** Device pixels per CSS pixel; print needs more than a screen. */
let sharpness = 1;
/** The width of a plot in print, in CSS pixels; 0 on a screen. */
let paperWidth = 0;

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const SHAPES = ["circle", "square", "triangle", "diamond"];
const COLOURS = 8;

/** The style of the n-th of several series; colour, dash and shape all differ, so that series are distinct in grey, too. */
function style(n) {
    return {
        colour: `--series-${n % COLOURS}`,
        dash: DASHES[(n + Math.floor(n / COLOURS)) % DASHES.length],
        shape: SHAPES[(n + Math.floor(n / COLOURS)) % SHAPES.length],
    };
}

/** The current value of a colour in the style sheet. */
function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888888";
}

/**
 * A figure with a plot that `build()` describes (or with the reason why there is none, if it returns a text):
 * `label`: the description for readers who cannot see the plot;
 * `data`: in uPlot's form;
 * `x`, `y`: the axes, each with `title`, `range`, `text(value)` and, if its values are logarithms, their base in `log`;
 * `series`, `bands`: how each row of the data is drawn;
 * `groups`: what the legend switches and the cursor reads, each with `name`, `style`, `kind`, `series` and
 * `text(places, data)`;
 * `at(place)`: the text for the cursor's place;
 * `near`: whether the cursor finds single dots;
 * `still`: whether the legend only shows the groups, and switches nothing;
 * `shade(u)`, `over(u)`: draw below the series, and above them.
 */
function plotFigure(caption, build) {
    const box = element("div", { class: "plot", role: "img" });
    const keys = element("div", { class: "keys", role: "group", "aria-label": "What is drawn" });
    const hint = element("span", { class: "hint" }, " Drag to zoom, double-click to see all again.");
    const figure = element("figure", {}, element("figcaption", {}, caption, hint), keys, box);
    plots.push({ build, box, keys, hint, hidden: new Set(), drawn: null });
    return figure;
}

/** Draws or redraws a plot. */
function draw(plot) {
    const spec = plot.build();
    plot.drawn?.destroy();
    plot.drawn = null;
    plot.keys.replaceChildren();
    plot.hint.hidden = typeof spec === "string";
    if (typeof spec === "string") {
        plot.box.removeAttribute("role");
        plot.box.replaceChildren(paragraph(spec, "absent"));
        return;
    }
    plot.box.setAttribute("role", "img");
    plot.box.setAttribute("aria-label", spec.label);
    plot.box.replaceChildren();
    plot.box.style.zoom = sharpness === 1 ? "" : String(1 / sharpness);
    plot.drawn = new uPlot(options(plot, spec), spec.data, plot.box);
    if (spec.groups.length > 1) {
        const key = (group) =>
            spec.still
                ? element("span", { class: "key still" }, swatch(group), group.name)
                : keyOf(plot, group);
        plot.keys.append(...spec.groups.map(key));
    }
}

/** Redraws the plots within an element, because their content has changed. */
function redraw(within) {
    plots.filter((plot) => within.contains(plot.box)).forEach(draw);
}

function sizeOf(plot) {
    const width = Math.max(paperWidth || plot.box.parentElement.clientWidth, 200);
    return { width: Math.floor(width * sharpness), height: (width < 600 ? 260 : 320) * sharpness };
}

function options(plot, spec) {
    const hiddenSeries = new Set(spec.groups.filter((g) => plot.hidden.has(g.name)).flatMap((g) => g.series));
    const series = spec.series.map((one, at) => ({ ...seriesOptions(one), show: !hiddenSeries.has(at + 1) }));
    return {
        ...sizeOf(plot),
        padding: [10 * sharpness, 14 * sharpness, 0, 0],
        legend: { show: false },
        series: [{}, ...series],
        bands: (spec.bands ?? []).map((band) => ({
            series: band.series,
            fill: faded(colour(band.colour), band.share ?? 0.18),
        })),
        scales: { x: { time: false, range: wholeOrZoomed(spec) }, y: { range: () => spec.y.range } },
        axes: [axis(spec.x, true), axis(spec.y, false)],
        cursor: cursor(spec),
        hooks: {
            ready: [(u) => addReading(u, spec)],
            setCursor: [(u) => read(u, spec)],
            drawAxes: [(u) => spec.shade?.(u)],
            draw: [(u) => spec.over?.(u)],
        },
    };
}

/** The whole range, unless the user has zoomed. */
function wholeOrZoomed(spec) {
    const places = spec.data[0];
    return (u, low, high) =>
        low === null || (low <= places[0] && high >= places.at(-1)) ? spec.x.range : [low, high];
}

function axis(spec, across) {
    const font = `${12 * sharpness}px system-ui, sans-serif`;
    const log = (u, at, low, high) =>
        logSplits(low, high, (across ? u.width / 80 : u.height / 36) / sharpness);
    return {
        font,
        labelFont: font,
        label: spec.title,
        labelSize: 22 * sharpness,
        labelGap: 2 * sharpness,
        size: across ? 30 * sharpness : (u, labels) => (22 + 7 * longest(labels)) * sharpness,
        gap: 5 * sharpness,
        space: (across ? 70 : 36) * sharpness,
        stroke: colour("--quiet"),
        grid: { stroke: colour("--grid"), width: sharpness },
        ticks: { stroke: colour("--grid"), width: sharpness, size: 4 * sharpness },
        values: (u, splits) => splits.map((split) => spec.text(split)),
        ...(spec.log === 10 ? { splits: log } : {}),
        ...(spec.log === 2 ? { incrs: [1, 2, 4, 5, 10] } : {}),
    };
}

/** The length of the longest label, in characters, with a minimum. */
function longest(labels) {
    return Math.max(5, ...(labels ?? []).map((label) => label?.length ?? 0));
}

/** Positions of labels on an axis of log10: whole decades, or 1, 2, 5 of each, or equal steps if few decades are visible. */
function logSplits(low, high, room) {
    const decades = high - low;
    if (decades * 3 > room) {
        const step = Math.max(1, Math.ceil(decades / room));
        return placesFrom(Math.ceil(low / step) * step, high, step);
    }
    const marks = placesFrom(Math.floor(low), high, 1).flatMap((whole) =>
        [0, Math.log10(2), Math.log10(5)].map((part) => whole + part),
    );
    const seen = marks.filter((mark) => mark >= low && mark <= high);
    return seen.length > 2 ? seen : equalSteps(10 ** low, 10 ** high, room).map(Math.log10);
}

function placesFrom(first, last, step) {
    const places = [];
    for (let place = first; place <= last + 1e-9; place += step) {
        places.push(place);
    }
    return places;
}

function equalSteps(low, high, room) {
    const rough = (high - low) / Math.max(2, room / 2);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough) ?? rough;
    return placesFrom(Math.ceil(low / step) * step, high, step);
}

function seriesOptions(one) {
    const ink = colour(one.colour);
    const none = { show: false };
    switch (one.kind) {
        case "dots":
            return { stroke: ink, fill: faded(ink, 0.6), width: 0, paths: dotPaths(one.shape), points: none };
        case "edge":
            return { stroke: "transparent", width: 0, points: none, spanGaps: true };
        default:
            return {
                stroke: ink,
                width: 2 * sharpness,
                dash: one.dash.map((length) => length * sharpness),
                spanGaps: true,
                points: one.marks
                    ? {
                          show: true,
                          size: 7 * sharpness,
                          width: 1.5 * sharpness,
                          stroke: ink,
                          fill: one.hollow ? colour("--page") : ink,
                      }
                    : none,
            };
    }
}

/** A colour of six hexadecimal digits with transparency. */
function faded(ink, share) {
    return (
        ink +
        Math.round(share * 255)
            .toString(16)
            .padStart(2, "0")
    );
}

/** Draws a small shape for each visible point. */
function dotPaths(shape) {
    return (u, at, from, to) => {
        const fill = new Path2D();
        const size = 2 * devicePixelRatio * sharpness;
        const [places, values] = [u.data[0], u.data[at]];
        for (let i = from; i <= to; i += 1) {
            if (values[i] !== null) {
                addShape(
                    fill,
                    shape,
                    u.valToPos(places[i], "x", true),
                    u.valToPos(values[i], "y", true),
                    size,
                );
            }
        }
        return { stroke: null, fill, clip: null, flags: 0 };
    };
}

function addShape(path, shape, x, y, r) {
    if (shape === "circle") {
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, 2 * Math.PI);
    } else if (shape === "square") {
        path.rect(x - r, y - r, 2 * r, 2 * r);
    } else {
        const corners =
            shape === "triangle"
                ? [
                      [0, -1.3],
                      [1.3, 1],
                      [-1.3, 1],
                  ]
                : [
                      [0, -1.4],
                      [1.4, 0],
                      [0, 1.4],
                      [-1.4, 0],
                  ];
        corners.forEach(([dx, dy], i) =>
            i === 0 ? path.moveTo(x + dx * r, y + dy * r) : path.lineTo(x + dx * r, y + dy * r),
        );
        path.closePath();
    }
}

function cursor(spec) {
    const drag = { x: true, y: true, uni: 30, dist: 5 };
    return spec.near ? { drag, y: true, dataIdx: nearestDot } : { drag, y: false };
}

/** The dot of a series that is nearest to the pointer, within a few pixels. */
function nearestDot(u, at, middle) {
    const [places, values] = [u.data[0], u.data[at]];
    const reach = 12;
    let best = null;
    let least = reach * reach;
    const look = (i) => {
        const dx = u.valToPos(places[i], "x") - u.cursor.left;
        if (values[i] !== null) {
            const distance = dx * dx + (u.valToPos(values[i], "y") - u.cursor.top) ** 2;
            [best, least] = distance < least ? [i, distance] : [best, least];
        }
        return Math.abs(dx) <= reach;
    };
    for (let i = middle; i >= 0 && look(i); i -= 1);
    for (let i = middle + 1; i < places.length && look(i); i += 1);
    return at === 0 ? middle : best;
}

function addReading(u, spec) {
    spec.reading = element("div", { class: "reading", hidden: "" });
    u.over.append(spec.reading);
}

/** Shows the values under the cursor. */
function read(u, spec) {
    if (!spec.reading) {
        return;
    }
    const { left, top, idxs } = u.cursor;
    const lines =
        left < 0 || !idxs
            ? []
            : spec.groups
                  .filter((group) => u.series[group.series[0]].show)
                  .flatMap((group) => {
                      const text = group.text(idxs, u.data);
                      return text === null
                          ? []
                          : [element("div", {}, swatch(group), `${group.name}: ${text}`)];
                  });
    spec.reading.hidden = lines.length === 0;
    if (lines.length === 0) {
        return;
    }
    spec.reading.replaceChildren(
        ...(spec.at ? [element("strong", {}, spec.at(u.data[0][idxs[0]]))] : []),
        ...lines,
    );
    const { clientWidth, clientHeight } = u.over;
    const x0 = left > clientWidth / 2 ? left - spec.reading.offsetWidth - 14 : left + 14;
    const room = Math.max(0, clientHeight - spec.reading.offsetHeight);
    const x = Math.min(Math.max(x0, 0), Math.max(0, clientWidth - spec.reading.offsetWidth));
    spec.reading.style.transform = `translate(${x}px, ${Math.min(Math.max(top - 20, 0), room)}px)`;
}

/** A button of the legend, which shows and hides its group. */
function keyOf(plot, group) {
    const button = element("button", { type: "button", class: "key" }, swatch(group), group.name);
    const mark = () => button.setAttribute("aria-pressed", String(!plot.hidden.has(group.name)));
    button.addEventListener("click", () => {
        const shown = plot.hidden.delete(group.name);
        if (!shown) {
            plot.hidden.add(group.name);
        }
        group.series.forEach((at) => plot.drawn.setSeries(at, { show: shown }));
        mark();
    });
    mark();
    return button;
}

/** A small sample of a group's style. */
function swatch(group) {
    const drawing = shapeElement("svg", {
        width: 24,
        height: 12,
        viewBox: "0 0 24 12",
        "aria-hidden": "true",
    });
    const ink = `var(${group.style.colour})`;
    if (group.kind === "dots") {
        drawing.append(shapeElement("path", { d: SWATCHES[group.style.shape], style: `fill: ${ink}` }));
    } else if (group.kind === "area") {
        drawing.append(shapeElement("path", { d: "M2 0H22V12H2z", style: `fill: ${ink}` }));
    } else {
        const dash = group.style.dash.join(" ") || "none";
        drawing.append(
            shapeElement("path", {
                d: "M0 6H24",
                style: `stroke: ${ink}; stroke-width: 2.5; stroke-dasharray: ${dash}`,
            }),
        );
    }
    return drawing;
}

const SWATCHES = {
    circle: "M16 6a4 4 0 1 1-8 0a4 4 0 1 1 8 0z",
    square: "M8 2h8v8H8z",
    triangle: "M12 1l5 9.5H7z",
    diamond: "M12 .5L17.5 6L12 11.5L6.5 6z",
};

function fit(plot) {
    const size = plot.drawn && sizeOf(plot);
    if (size && size.width !== plot.drawn.width) {
        plot.drawn.setSize(size);
    }
}

/** In print, everything is unfolded, except what is too long to print. */
function unfold(details, starts) {
    if (starts && !details.open && details.querySelectorAll("tr").length < 200) {
        details.open = true;
        details.dataset.folded = "";
    } else if (!starts && "folded" in details.dataset) {
        details.open = false;
        delete details.dataset.folded;
    }
}

/** Draws all plots, and redraws them when the window, the theme or the print size changes. */
function drawPlots() {
    const drawAll = () => plots.forEach(draw);
    const print = (starts) => {
        [sharpness, paperWidth] = starts ? [Math.max(1, 2.5 / devicePixelRatio), 680] : [1, 0];
        document.documentElement.classList.toggle("paper", starts);
        document.querySelectorAll("details").forEach((details) => unfold(details, starts));
        drawAll();
    };
    drawAll();
    let waiting = 0;
    addEventListener("resize", () => {
        cancelAnimationFrame(waiting);
        waiting = requestAnimationFrame(() => paperWidth || plots.forEach(fit));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paperWidth || drawAll());
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
}
