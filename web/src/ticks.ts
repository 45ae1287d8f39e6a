// Drops and marks as ticks under the delay: a row for each lane, on the same axis of time.

import { GUTTER } from "./charts.js";
import { type Column, growths, points, type Window } from "./columns.js";
import type { LaneData } from "./data.js";
import { color } from "./dom.js";
import { LINK } from "./protocol.js";

const ROW = 18;
const RIGHT = 8;

export class Ticks {
  readonly #canvas: HTMLCanvasElement;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    canvas.setAttribute("role", "img");
  }

  draw(lanes: LaneData[], window: Window, letters: string[]): void {
    const canvas = this.#canvas;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, ROW * lanes.length];
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const { times, stride } = points(window);
    const left = (time: number) =>
      GUTTER + ((time - window.from) / (window.to - window.from)) * (width - GUTTER - RIGHT);
    context.font = "12px system-ui, sans-serif";
    lanes.forEach((lane, index) => {
      const top = index * ROW;
      context.fillStyle = color("quiet");
      context.fillText(`lane ${letters[index] ?? ""}`, 8, top + 13);
      context.fillStyle = color("grid");
      context.fillRect(GUTTER, top + ROW - 1, width - GUTTER - RIGHT, 1);
      const rows: [number, string, number, number][] = [
        [LINK.marked, "mark", top + 9, 7],
        [LINK.dropped, "drop", top + 1, 15],
      ];
      for (const [column, name, from, tall] of rows) {
        context.fillStyle = color(name);
        const counts: Column = growths(lane, column, times, stride);
        counts.forEach((count, at) => {
          if (count !== null && count > 0) context.fillRect(left(times[at] ?? 0) - 0.75, from, 1.5, tall);
        });
      }
    });
  }
}
