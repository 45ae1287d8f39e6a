// Charts: uPlot in the colors of the page, and what they have in common.
import uPlot from "uplot";
import { color } from "./dom.js";
import { alike } from "./format.js";

/** Width of the axis on the left, px: charts under one another have their times under one another. */
export const GUTTER = 54;

export interface Line {
  label: string;
  /** Name of a color of the style sheet. */
  color: string;
  width?: number;
}

export interface About {
  /** What is drawn, and its unit. */
  label: string;
  height: number;
  /** Top of the y axis, where it does not follow the data. */
  top?: () => number;
  /** The x axis: time in s, or response times on a logarithmic scale. */
  x?: "time" | "log";
}

function axis(log: boolean, side: "x" | "y"): uPlot.Axis {
  const shared = { stroke: color("quiet"), font: "12px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: color("grid"), width: 1 };
  if (side === "y") return { ...shared, grid, size: GUTTER, values: (_, values) => alike(values) };
  const say = (values: (number | null)[]) => values.map((value) => (value === null ? "" : `${value} s`));
  const values = (_: uPlot, values: number[]) => (log ? say(values) : alike(values));
  return { ...shared, grid: { show: false }, size: 26, values };
}

/** The top of an axis: a little above what is drawn, and steady while that changes little. */
export function roof(most: number): number {
  if (!(most > 0)) return 1;
  const step = 10 ** Math.floor(Math.log10(most)) / 2;
  return Math.ceil((most * 1.05) / step) * step;
}

export class Chart {
  readonly #plot: uPlot;
  readonly #holder: HTMLElement;
  readonly #watch: ResizeObserver;

  constructor(holder: HTMLElement, about: About, lines: Line[]) {
    this.#holder = holder;
    const log = about.x === "log";
    holder.replaceChildren();
    holder.setAttribute("role", "img");
    const options: uPlot.Options = {
      width: Math.max(120, holder.clientWidth),
      height: about.height,
      padding: [8, 8, 0, 0],
      cursor: { show: false },
      legend: { show: false },
      scales: {
        x: log ? { time: false, distr: 3, log: 10, range: [0.01, 100] } : { time: false },
        y: { range: (_, __, most) => [0, about.top ? about.top() : roof(most)] },
      },
      axes: [axis(log, "x"), axis(log, "y")],
      series: [{}, ...lines.map((line) => this.#series(line))],
    };
    this.#plot = new uPlot(options, [[], ...lines.map(() => [])], holder);
    holder.setAttribute("aria-label", about.label);
    this.#watch = new ResizeObserver(() => this.#fit(about.height));
    this.#watch.observe(holder);
  }

  #series(line: Line): uPlot.Series {
    return {
      label: line.label,
      stroke: color(line.color),
      width: line.width ?? 1.5,
      points: { show: false },
    };
  }

  #fit(height: number): void {
    const width = Math.max(120, this.#holder.clientWidth);
    if (width !== this.#plot.width) this.#plot.setSize({ width, height });
  }

  /** Calls `clicked` with the place of each click on the plot, in the units of its axes. */
  onClick(clicked: (x: number, y: number) => void): void {
    this.#plot.over.addEventListener("click", ({ offsetX, offsetY }) => {
      clicked(this.#plot.posToVal(offsetX, "x"), this.#plot.posToVal(offsetY, "y"));
    });
  }

  draw(data: uPlot.AlignedData, x?: [from: number, to: number]): void {
    this.#plot.batch(() => {
      this.#plot.setData(data, x === undefined);
      if (x !== undefined) this.#plot.setScale("x", { min: x[0], max: x[1] });
    });
  }

  close(): void {
    this.#watch.disconnect();
    this.#plot.destroy();
  }
}
