// The slowdown by source: stacked areas, or a bar if there is only one scale.

/** Maximum number of sources with an area of their own; the rest share one area. */
const MOST_AREAS = 7;
/** Intervals beyond this multiple of the highest slowdown are cut off, or the areas would be flat. */
const MOST_ABOVE = 1.6;
const WHOLE = { colour: "--text", dash: [], shape: "circle" };

/** The layers from bottom to top, the costliest first, each with its name, its colour and its part at each scale. */
function layersOf(advice) {
    const partAt = (source) => (scale) =>
        Math.max(0, number(record(list(source.costs)[scale.at])?.part_percent) ?? 0);
    const scales = scalesOf(advice);
    const costly = records(advice.sources).filter((source) =>
        scales.some((scale) => partAt(source)(scale) > 0),
    );
    const single = costly.filter((source) => source.source !== SMALL_SOURCES).slice(0, MOST_AREAS);
    const rest = costly.filter((source) => !single.includes(source));
    const layers = single.map((source, n) => ({
        name: clean(source.source),
        colour: `--series-${n}`,
        kind: `series-${n}`,
        at: partAt(source),
    }));
    if (rest.length > 0) {
        const only = rest.length === 1 && rest[0].source === SMALL_SOURCES;
        layers.push({
            name: only ? SMALL_SOURCES : plural(rest.length, "other source"),
            colour: "--own",
            kind: "left",
            at: (scale) => rest.reduce((sum, source) => sum + partAt(source)(scale), 0),
        });
    }
    return layers;
}

function splitFigure(advice) {
    const layers = layersOf(advice);
    const scales = scalesUpwards(advice);
    if (layers.length === 0) {
        return paragraph("At these scales noise costs nothing, so there is nothing to split.", "absent");
    }
    if (scales.length === 1) {
        return splitBar(layers, scales[0]);
    }
    const state = { share: false };
    const figure = plotFigure(
        "Slowdown over ranks, by source: the areas add up to the slowdown, whose 95 % confidence interval is the bar on each mark; with an arrow it continues. Hatched, with hollow marks: extrapolated.",
        () => splitSpec(layers, scales, state.share),
    );
    const choice = element(
        "select",
        { id: "split-height" },
        element("option", { value: "" }, "slowdown, %"),
        element("option", { value: "share" }, "share of the slowdown"),
    );
    choice.addEventListener("change", () => {
        state.share = choice.value !== "";
        redraw(figure);
    });
    figure.firstChild.after(
        element("div", { class: "choice" }, element("label", { for: choice.id }, "Height is"), choice),
    );
    return figure;
}

/** A single scale: a bar, divided by source. */
function splitBar(layers, scale) {
    const all = layers.reduce((sum, layer) => sum + layer.at(scale), 0);
    const shown = (layer) => `${layer.name}: ${points(layer.at(scale))} points`;
    const piece = (layer) =>
        element("i", {
            class: `piece ${layer.kind}`,
            style: `width: ${(100 * layer.at(scale)) / all}%`,
            title: shown(layer),
        });
    const key = (layer) =>
        element("span", { class: "swatch" }, element("i", { class: `piece ${layer.kind}` }), shown(layer));
    return element(
        "figure",
        { class: "stacks" },
        element(
            "figcaption",
            {},
            `The slowdown ${atRanks(scale)}, ${withInterval(scale.slowdown_percent, scale.ci95_percent)}, by source${scale.supported === false ? "; extrapolated" : ""}.`,
        ),
        element(
            "span",
            { class: "stack whole", role: "img", "aria-label": layers.map(shown).join(", ") },
            ...layers.map(piece),
        ),
        element("div", { class: "keys under" }, ...layers.map(key)),
    );
}

function splitSpec(layers, scales, share) {
    const places = scales.map((scale) => Math.log2(scale.ranks));
    const whole = (scale) => layers.reduce((sum, layer) => sum + layer.at(scale), 0);
    const shown = (value, scale) => (share ? (whole(scale) > 0 ? (100 * value) / whole(scale) : 0) : value);
    const edges = layers.map((_, n) =>
        scales.map((scale) => {
            const below = layers.slice(0, n + 1).reduce((sum, layer) => sum + layer.at(scale), 0);
            return shown(below, scale);
        }),
    );
    const ground = scales.map(() => 0);
    const totals = scales.map((scale) => (share ? null : scale.slowdown_percent));
    const slowest = Math.max(...scales.map((scale) => scale.slowdown_percent));
    const ends = scales.map((scale) => number(list(scale.ci95_percent)[1]) ?? 0);
    const highest = Math.max(slowest, Math.min(MOST_ABOVE * slowest, Math.max(...ends)));
    const margin = (places.at(-1) - places[0]) * 0.02;
    const edge = { ...WHOLE, kind: "edge" };
    return {
        label: `Slowdown by source from ${count(scales[0].ranks)} to ${count(scales.at(-1).ranks)} ranks, up to ${significant(slowest, 3)} %, of which ${layers
            .map((layer) => `${layer.name} ${points(layer.at(scales.at(-1)))}`)
            .join(", ")}. The table of sources beneath holds the same numbers.`,
        data: [places, ground, ...edges, totals],
        x: { title: "ranks", log: 2, range: [places[0] - margin, places.at(-1) + margin], text: ranksOfLog },
        y: {
            title: share ? "share of the slowdown" : "slowdown",
            range: [0, share ? 100 : highest * 1.08],
            text: (value) => `${significant(value, 4)} %`,
        },
        series: [edge, ...edges.map(() => edge), { ...WHOLE, kind: "line" }],
        bands: layers.map((layer, n) => ({ series: [n + 2, n + 1], colour: layer.colour, share: 0.85 })),
        still: true,
        groups: [
            ...(share ? [] : [wholeGroup(scales, layers.length + 2)]),
            ...layers.map((layer, n) => ({
                name: layer.name,
                style: { colour: layer.colour },
                kind: "area",
                series: [n + 2],
                text: (at) => partText(layer, scales[at[0]], whole),
            })),
        ],
        at: (place) => `${count(Math.round(2 ** place))} ranks`,
        over: (u) => {
            hatchBeyond(u, scales);
            separate(u, [ground, ...edges]);
            nameAreas(u, layers, [ground, ...edges]);
            if (!share) {
                markWhole(u, scales, places);
            }
        },
    };
}

function wholeGroup(scales, series) {
    return {
        name: "all noise",
        style: WHOLE,
        kind: "line",
        series: [series],
        text: (at) => {
            const scale = scales[at[0]];
            const beyond = scale?.supported === false ? ", extrapolated" : "";
            return scale ? withInterval(scale.slowdown_percent, scale.ci95_percent) + beyond : null;
        },
    };
}

function partText(layer, scale, whole) {
    if (!scale) {
        return null;
    }
    const value = layer.at(scale);
    const share = whole(scale) > 0 ? (100 * value) / whole(scale) : 0;
    return `${points(value)} points, ${significant(share, 2)} % of it`;
}
