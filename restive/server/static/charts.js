/* Lines with their 95% bands, drawn by uPlot from the data beside them (`data-plot` of a .plot):
   {"x": [...], "labels": [...], "ticks": [...], "sides": [{"name", "kind", "mean", "low", "high"}], "zero": false, "range": [low, high] or null}
   A table below has the same numbers, so the chart is hidden from screen readers. */
"use strict";
(() => {
  const WIDE = 3; // bands more than this many times as wide as the median may leave the scale
  const DOTS = 40; // up to this many rounds have dots

  const median = (values) => values.length ? [...values].sort((a, b) => a - b)[values.length >> 1] : NaN;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const known = (value) => value !== null && Number.isFinite(value);

  /* The range that is given, or that of the values; very wide bands are ignored, because they would flatten the rest. */
  const findEnds = ({ sides, zero, range }) => {
    if (range) return [range[0] - (range[1] - range[0]) * 0.03, range[1] + (range[1] - range[0]) * 0.03];
    const all = zero ? [0] : [];
    for (const side of sides) {
      const widths = side.mean.map((_, i) => known(side.low[i]) ? side.high[i] - side.low[i] : null);
      const usual = median(widths.filter(known));
      side.mean.forEach((mean, i) => {
        if (known(mean)) all.push(mean);
        if (known(widths[i]) && widths[i] <= WIDE * usual) all.push(side.low[i], side.high[i]);
      });
    }
    const low = Math.min(...all), high = Math.max(...all), margin = (high - low) * 0.06 || 0.5;
    return [low - margin, high + margin];
  };

  const show = (value) => known(value) ? Number(value.toPrecision(3)).toLocaleString("en").replace("-", "−") : "–";

  const describe = (plot, at) => plot.sides
    .filter((side) => known(side.mean[at]))
    .map((side) => `${side.name} ${show(side.mean[at])}` +
      (known(side.low[at]) ? ` (${show(side.low[at])} to ${show(side.high[at])})` : ""))
    .join(", ");

  const makeOptions = (box, plot, readout) => {
    const axis = { stroke: colour("soft"), font: "13px system-ui, sans-serif", grid: { stroke: colour("rule"), width: 1 }, ticks: { show: false } };
    const series = [{}], bands = [], data = [plot.x];
    for (const side of plot.sides) {
      const line = colour(side.kind);
      const none = { stroke: "transparent", width: 0, points: { show: false } };
      bands.push({ series: [series.length + 1, series.length + 2], fill: `color-mix(in srgb, ${line} 16%, transparent)` });
      series.push({ stroke: line, width: 2, dash: side.kind === "control" ? [6, 4] : undefined, points: { show: plot.x.length <= DOTS, size: 5, fill: line, stroke: line } }, none, none);
      data.push(side.mean, side.high, side.low);
    }
    const zero = (u) => {
      if (!plot.zero) return;
      const y = u.valToPos(0, "y", true), { ctx, bbox } = u;
      ctx.save();
      ctx.strokeStyle = colour("edge");
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.restore();
    };
    const follow = (u) => {
      const at = u.cursor.idx;
      if (readout) readout.textContent = at === null || at === undefined ? readout.dataset.rest || "" : `${plot.labels[at]} (round ${plot.x[at]}): ${describe(plot, at)}`;
    };
    const options = {
      width: box.clientWidth, height: box.clientHeight, series, bands,
      legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: (u, low, high) => [low - 0.5, high + 0.5] }, y: { range: () => findEnds(plot) } },
      axes: [{ ...axis, grid: { show: false }, values: (u, places) => places.map((place) => plot.ticks[place - plot.x[0]] ?? ""), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], space: 110, size: 30 }, { ...axis, size: 52 }],
      hooks: { drawAxes: [zero], setCursor: [follow] },
      padding: [8, 8, 0, 0],
    };
    return [options, data];
  };

  const draw = (box) => {
    const plot = JSON.parse(box.dataset.plot);
    const readout = box.parentElement.querySelector(".readout");
    if (box.drawn) box.drawn.destroy();
    const [options, data] = makeOptions(box, plot, readout);
    box.drawn = new uPlot(options, data, box);
  };

  const boxes = [...document.querySelectorAll(".plot[data-plot]")];
  boxes.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => boxes.forEach(draw));
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.drawn && target.clientWidth !== target.drawn.width) target.drawn.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });
  boxes.forEach((box) => watch.observe(box));
})();
