// Drawings on the areas of the split: separators, names, hatching, marks and intervals.

/** Minimum height of an area at its right end, in CSS pixels, for a name in it. */
const ROOM_OF_NAME = 16;

/** Separators between the areas, so that areas of similar colours stay distinct; none where one would cover a thin area. */
function separate(u, edges) {
    const context = u.ctx;
    const unit = devicePixelRatio * sharpness;
    const at = (edge, i) => [u.valToPos(u.data[0][i], "x", true), u.valToPos(edge[i], "y", true)];
    const high = (n, i) => at(edges[n], i)[1] - at(edges[n + 1], i)[1];
    const room = (n, i) => Math.max(high(n, i), high(n, i + 1)) >= 4 * unit;
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    context.strokeStyle = colour("--page");
    context.lineWidth = 1.5 * unit;
    context.beginPath();
    for (let n = 1; n < edges.length - 1; n += 1) {
        for (let i = 0; i < edges[n].length - 1; i += 1) {
            if (room(n - 1, i) && room(n, i)) {
                context.moveTo(...at(edges[n], i));
                context.lineTo(...at(edges[n], i + 1));
            }
        }
    }
    context.stroke();
    context.restore();
}

/** Hatches the region that the traces do not support, from the last supported scale on. */
function hatchBeyond(u, scales) {
    const first = scales.findIndex((scale) => scale.supported === false);
    if (first < 0) {
        return;
    }
    const { left, top, width, height } = u.bbox;
    const from = first === 0 ? left : u.valToPos(u.data[0][first - 1], "x", true);
    const context = u.ctx;
    const unit = devicePixelRatio * sharpness;
    context.save();
    context.beginPath();
    context.rect(Math.max(left, from), top, left + width - Math.max(left, from), height);
    context.clip();
    context.strokeStyle = colour("--page");
    context.globalAlpha = 0.6;
    context.lineWidth = 1.2 * unit;
    context.beginPath();
    for (let x = left - height; x < left + width; x += 9 * unit) {
        context.moveTo(x, top + height);
        context.lineTo(x + height, top);
    }
    context.stroke();
    context.restore();
}

/** The name of each area at its right end, if the area is high enough. */
function nameAreas(u, layers, edges) {
    const unit = devicePixelRatio * sharpness;
    const context = u.ctx;
    const end = Math.min(u.data[0].at(-1), u.scales.x.max);
    const most = u.bbox.width < 500 * unit ? 12 : 24;
    const right = u.valToPos(end, "x", true) - 12 * unit;
    context.save();
    context.font = `${12 * unit}px system-ui, sans-serif`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    layers.forEach((layer, n) => {
        const [low, high] = [edges[n], edges[n + 1]].map((edge) =>
            u.valToPos(between(u.data[0], edge, end), "y", true),
        );
        if (low - high < ROOM_OF_NAME * unit) {
            return;
        }
        const name = layer.name.length > most ? `${layer.name.slice(0, most - 1)}…` : layer.name;
        // The area gets lower to the left, so the name is placed where the area is as high as the text is wide.
        const y = Math.min((low + high) / 2 + 2 * unit, low - 8 * unit);
        const wide = context.measureText(name).width + 8 * unit;
        context.fillStyle = colour("--page");
        context.globalAlpha = 0.85;
        context.fillRect(right - wide, y - 7.5 * unit, wide, 15 * unit);
        context.globalAlpha = 1;
        context.fillStyle = colour("--text");
        context.fillText(name, right - 4 * unit, y);
    });
    context.restore();
}

/** Interpolates linearly between the values at neighbouring places. */
function between(places, values, place) {
    const after = Math.max(
        1,
        places.findIndex((one) => one >= place),
    );
    const [from, to] = [places[after - 1], places[after]];
    return values[after - 1] + ((values[after] - values[after - 1]) * (place - from)) / (to - from);
}

/** A mark for the slowdown of each scale, hollow where it is extrapolated, with its interval. */
function markWhole(u, scales, places) {
    const unit = devicePixelRatio * sharpness;
    const context = u.ctx;
    context.save();
    context.strokeStyle = colour("--text");
    context.lineWidth = 1.5 * unit;
    scales.forEach((scale, i) => {
        const x = u.valToPos(places[i], "x", true);
        const at = (value) => u.valToPos(value, "y", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) {
            return;
        }
        const [low, high] = list(scale.ci95_percent).map(number);
        if (pointsBetween(scale.ci95_percent) !== NOTHING) {
            markInterval(context, x, at(low), at(high), u.bbox.top, unit);
        }
        context.beginPath();
        context.arc(x, at(scale.slowdown_percent), 3.5 * unit, 0, 2 * Math.PI);
        context.fillStyle = colour(scale.supported === false ? "--page" : "--text");
        context.fill();
        context.stroke();
    });
    context.restore();
}

/** An error bar with a cap at each end; an arrow replaces an end outside the plot. */
function markInterval(context, x, low, high, top, unit) {
    const cut = high < top;
    const end = Math.max(high, top);
    context.beginPath();
    context.moveTo(x, low);
    context.lineTo(x, end);
    context.moveTo(x - 4 * unit, low);
    context.lineTo(x + 4 * unit, low);
    context.moveTo(x - 4 * unit, end + (cut ? 6 * unit : 0));
    if (cut) {
        context.lineTo(x, end);
    }
    context.lineTo(x + 4 * unit, end + (cut ? 6 * unit : 0));
    context.stroke();
}
