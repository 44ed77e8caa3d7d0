// Reports the visible range of the axes of a Plotly chart when it changes.
/** @import { Component } from "densembed/panels/types.js" */

/** @typedef {{ chart: string, axes: string[], name: string }} ZoomData */
/** @typedef {{ autorange?: boolean, range?: unknown[] }} Axis */
/**
 * @typedef {HTMLElement & {
 *   on?: (event: string, listener: (change: object) => void) => void,
 *   layout: Record<string, Axis | undefined>, followed?: boolean }} Plot
 */

/** @param {Component<ZoomData>} component */
export default ({ data, setStateValue }) => {
  const listen = () => {
    /** @type {Plot | null} */
    const plot = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!plot?.on || plot.followed) return;
    plot.followed = true;
    plot.on("plotly_relayout", (change) => {
      if (!Object.keys(change).some((name) => /axis[0-9]*[.](range|autorange)/.test(name))) return;
      /** @type {Record<string, unknown[]>} */
      const axes = {};
      for (const axis of data.axes) {
        const { autorange, range } = plot.layout[axis] ?? {};
        if (range && !autorange) axes[axis] = [...range];
      }
      setStateValue("range", { name: data.name, axes });
    });
  };
  const timer = setInterval(listen, 100);
  return () => clearInterval(timer);
};
