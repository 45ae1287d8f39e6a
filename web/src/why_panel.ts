// Why a response took so long: asked by a click on the distribution, or by a form.
import { responseQuantiles, SHARES } from "./columns.js";
import type { LaneData } from "./data.js";
import { byId, h, say } from "./dom.js";
import { clock, ms, percent } from "./format.js";
import type { Player } from "./player.js";
import { RESPONSE } from "./protocol.js";
import type { State } from "./state.js";
import { LETTERS } from "./view.js";
import { type Breakdown, breakdown, counted, losses, paragraph, partOf, rowOf } from "./why.js";

/** Responses that the form offers: the share of all that is faster. */
const WHICH: readonly (readonly [share: number, said: string])[] = [
  [1, "the slowest"],
  [0.99, "slower than 99 %"],
  [0.95, "slower than 95 %"],
  [0.9, "slower than 90 %"],
  [0.5, "in the middle"],
];

export class WhyPanel {
  /** The last question: answers to earlier ones come too late. */
  #asked = 0;

  constructor(
    readonly player: Player,
    readonly begun: () => State,
    readonly complain: (message: string) => void,
  ) {
    byId("why-which").replaceChildren(...WHICH.map(([share, said]) => h("option", { value: share }, said)));
    byId("why-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = (id: string) => Number(byId<HTMLSelectElement>(id).value);
      void this.#explain(chosen("why-lane"), (times) => Math.floor(chosen("why-which") * times.length));
    });
  }

  /** Lanes begin: nothing has been asked of them. */
  build(names: string[]): void {
    this.#asked += 1;
    byId("why-lane").replaceChildren(
      ...names.map((name, index) => h("option", { value: index }, `${LETTERS[index]} ${name}`)),
    );
    byId("why").replaceChildren();
  }

  /** A point of the distribution: the response of the nearest line that took about so long. */
  point(seconds: number, share: number): Promise<void> {
    const distances = this.player.lanes.map(({ data }) => {
      const quantiles = responseQuantiles(data, data.classes.indexOf("web"));
      const at = quantiles?.findIndex((time) => time >= seconds) ?? -1;
      if (quantiles === null) return Number.POSITIVE_INFINITY;
      return Math.abs((at < 0 ? 1 : (SHARES[at] ?? 1)) - share);
    });
    const nearest = distances.indexOf(Math.min(...distances));
    return this.#explain(nearest, (times) => {
      const behind = times.findIndex((time) => time >= seconds);
      if (behind <= 0) return behind < 0 ? times.length - 1 : 0;
      const [before = 0, after = 0] = times.slice(behind - 1, behind + 1);
      return seconds - before < after - seconds ? behind - 1 : behind;
    });
  }

  /** Says why the response took so long that has this place among a lane's, the fastest first. */
  async #explain(index: number, place: (times: number[]) => number): Promise<void> {
    const data = this.player.lanes[index]?.data;
    if (data === undefined) return;
    const { responses } = data;
    const web = data.classes.indexOf("web");
    const rows = Array.from({ length: responses.length }, (_, row) => row)
      .filter((row) => responses.at(row, RESPONSE.class) === web)
      .sort((one, other) => responses.at(one, RESPONSE.seconds) - responses.at(other, RESPONSE.seconds));
    const times = rows.map((row) => responses.at(row, RESPONSE.seconds));
    const rank = Math.min(times.length - 1, place(times));
    const row = rows[rank];
    const panel = byId("why");
    if (row === undefined) {
      say(panel, "No web request has been answered yet.");
      return;
    }
    this.#asked += 1;
    const asked = this.#asked;
    const response: [number, number, number] = [responses.at(row, RESPONSE.end), web, times[rank] ?? 0];
    try {
      const found = await this.#brokenDown(index, data, response[0], panel);
      const at = rowOf(found, response);
      if (asked !== this.#asked) return;
      if (at === null) throw new Error("the run that was made again has no such response");
      byId<HTMLSelectElement>("why-lane").value = String(index);
      panel.replaceChildren(
        ...story(`Lane ${LETTERS[index]}`, breakdown(found, at), rank / Math.max(1, times.length - 1)),
      );
    } catch (error) {
      if (asked !== this.#asked) return;
      panel.replaceChildren();
      this.complain(error instanceof Error ? error.message : String(error));
    }
  }

  /** A lane's run with the parts of its response times: the one under way, or one that is made again. */
  async #brokenDown(index: number, data: LaneData, end: number, panel: HTMLElement): Promise<LaneData> {
    if (data.columns.length > 0) return data;
    say(panel, `Running lane ${LETTERS[index]} again up to ${clock(end)}, with the causes …`);
    return this.player.brokenDown(index, this.begun(), end + 0.01);
  }
}

/** What a reader gets: a paragraph, the parts as a table, the costliest loss. */
function story(lane: string, found: Breakdown, share: number): HTMLElement[] {
  const rows = found.parts.map(([key, time]) => {
    const { label, story } = partOf(key);
    const part = time / found.nanoseconds;
    return h(
      "tr",
      { title: story },
      h("th", { scope: "row" }, label),
      h("td", {}, ms(time / 1e6)),
      h("td", { class: "share", style: `--share: ${(100 * part).toFixed(2)}%` }, percent(part)),
      h("td", {}, counted(key, found.counts)),
    );
  });
  const head = ["Part", "Time", "Share", "Count"].map((name) => h("th", { scope: "col" }, name));
  const size = `${found.bytes.toLocaleString("en")} bytes`;
  const which = `${lane}, complete at ${clock(found.end)}, ${size}, ${share < 1 ? `slower than ${percent(share)} of the others` : "the slowest so far"}`;
  return [
    h("h3", {}, "Why it took so long ", h("small", {}, which)),
    h("p", {}, paragraph(found)),
    h("p", {}, losses(found)),
    h(
      "div",
      { class: "scroll", role: "region", "aria-label": "Parts of the response time", tabindex: 0 },
      h("table", { class: "parts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
    ),
  ];
}
