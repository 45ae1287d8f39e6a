// The page: makes its parts and holds them together.
import bytes from "virtual:engine";
import { KINDS } from "./catalog.js";
import { Controls, type Edit } from "./controls.js";
import { byId, h, say } from "./dom.js";
import { clock } from "./format.js";
import { linkNamed } from "./links.js";
import { compiled, more } from "./modules.js";
import { drawNetwork, Numbers } from "./numbers.js";
import { Player } from "./player.js";
import type { Pair } from "./protocol.js";
import { laneNames } from "./scenario.js";
import { saveLanes } from "./share.js";
import { fromAddress, lane, MOST_LANES, type State, toAddress } from "./state.js";
import { opening, type Story } from "./stories.js";
import { StoryPanel } from "./story_panel.js";
import { cardCharts, LETTERS, View } from "./view.js";
import { WhyPanel } from "./why_panel.js";

const SPEEDS = [0.1, 1, 2, 5, 10, 20, 50, 0];
const WINDOWS = [5, 10, 30, 60, 120];
/** The table and the story are renewed so often, in ms; with reduced motion everything is. */
const RENEW = 250;
/** Without an address the page begins so many simulated seconds into its first story. */
const HEAD_START = 10;

class Page {
  /** What the form shows. */
  state: State;
  /** What the lanes began with, and what has changed in them since: what the address says. */
  begun: State;
  readonly player: Player;
  readonly view: View;
  readonly numbers = new Numbers();
  readonly controls: Controls;
  readonly stories: StoryPanel;
  readonly why: WhyPanel;
  readonly #calm = matchMedia("(prefers-reduced-motion: reduce)");
  #renewed = 0;
  #drawnAt = -1;
  #describedAt = -1;
  #restart: ReturnType<typeof setTimeout> | undefined;
  /** Changes on their way to the lanes. */
  #pending: { pairs: Pair[]; lane: number | undefined }[] = [];
  #sending = false;

  constructor(modules: Player["modules"]) {
    this.state = location.hash === "" ? opening() : fromAddress(location.hash, KINDS);
    this.begun = structuredClone(this.state);
    this.player = new Player(modules, (message) => this.complain(message));
    this.why = new WhyPanel(
      this.player,
      () => this.begun,
      (message) => this.complain(message),
    );
    this.view = new View(this.player, (seconds, share) => void this.why.point(seconds, share));
    this.controls = new Controls(
      () => this.state,
      (edit) => this.edited(edit),
      (index) => void this.without(index),
    );
    this.stories = new StoryPanel((story) => void this.tell(story));
    this.#buttons();
  }

  #buttons(): void {
    const select = (
      id: string,
      values: number[],
      said: (value: number) => string,
      onChange: (value: number) => void,
    ) => {
      const field = byId<HTMLSelectElement>(id);
      field.replaceChildren(...values.map((value) => h("option", { value }, said(value))));
      field.addEventListener("change", () => onChange(Number(field.value)));
    };
    select(
      "speed",
      SPEEDS,
      (value) => (value === 0 ? "as fast as it goes" : `${value} × real time`),
      (value) => {
        this.state.speed = this.begun.speed = this.player.speed = value;
        this.#address();
      },
    );
    select(
      "seconds",
      WINDOWS,
      (value) => `${value} s`,
      (value) => {
        this.view.seconds = value;
        this.view.draw(true);
      },
    );
    byId<HTMLSelectElement>("seconds").value = "30";
    byId<HTMLSelectElement>("direction").addEventListener("change", (event) => {
      this.state.showUp = this.begun.showUp = (event.target as HTMLSelectElement).value === "up";
      this.#build();
      this.#address();
    });
    byId("play").addEventListener("click", () => this.play(!this.player.isPlaying));
    byId("step").addEventListener("click", () => {
      this.play(false);
      void this.player.step(0.1).then(() => this.#draw(true));
    });
    byId("restart").addEventListener("click", () => void this.begin(true));
    byId("scrub").addEventListener(
      "change",
      (event) => void this.back(Number((event.target as HTMLInputElement).value)),
    );
    byId("share").addEventListener("click", () => void this.copy());
    byId("download").addEventListener("click", () => void this.download());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#build());
    addEventListener("beforeprint", () => this.paper(true));
    addEventListener("afterprint", () => this.paper(false));
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === toAddress(this.begun)) return;
      this.state = fromAddress(location.hash, KINDS);
      void this.begin(
        true,
        this.state.lanes.map(({ changes }) => [...changes]),
      );
    });
  }

  /** Makes form, lanes and charts of the state, and begins at time 0; changes are those of an address. */
  async begin(form: boolean, changes?: State["lanes"][number]["changes"][]): Promise<void> {
    clearTimeout(this.#restart);
    this.state.lanes.forEach((one, index) => {
      one.changes = changes?.[index] ?? [];
    });
    this.begun = structuredClone(this.state);
    byId<HTMLSelectElement>("speed").value = String(this.state.speed);
    this.player.speed = this.state.speed;
    if (form) this.controls.build();
    this.complain("");
    try {
      await this.player.load(this.begun);
    } catch (error) {
      this.play(false);
      this.complain(error instanceof Error ? error.message : String(error));
      return;
    }
    this.#build();
    this.stories.show(this.begun.story);
    this.#address();
  }

  /** Charts, gauges and table of the lanes under way. */
  #build(): void {
    const first = this.player.lanes[0];
    if (first === undefined) return;
    byId<HTMLSelectElement>("direction").value = this.begun.showUp ? "up" : "down";
    for (const { data } of this.player.lanes) data.direction = Number(this.begun.showUp);
    const names = laneNames(this.begun);
    byId("cards").replaceChildren(
      ...names.map((name, index) =>
        h(
          "section",
          { class: "card lane", "data-part": "cards", style: `--lane: var(--lane-${index})` },
          h("h2", {}, `Lane ${LETTERS[index]}: ${name}`),
          cardCharts(index, first.data.classes),
        ),
      ),
    );
    this.numbers.build(this.begun, first.data.classes);
    this.why.build(names);
    this.view.build(names, first.data.classes, this.#top());
    this.#draw(true);
  }

  /** The most that the classes may receive: the top of the axis of throughput, Mbit/s. */
  #top(): number {
    const { link, up, transfers } = this.state;
    const rate = linkNamed(link)?.peak ?? this.state.rate;
    return transfers.some((group) => group.up && group.flows > 0)
      ? Math.max(rate, Math.min(up, 10 * rate))
      : rate;
  }

  edited({ live, lane: only, form = false }: Edit): void {
    this.stories.show("");
    this.state.story = this.begun.story = "";
    const keys =
      live?.filter(([key]) => this.player.lanes.some(({ changeable }) => changeable.has(key))) ?? [];
    if (form || keys.length === 0) {
      clearTimeout(this.#restart);
      // A slider that is dragged gives many values: the lanes begin with the last.
      this.#restart = setTimeout(() => void this.begin(form), form ? 0 : 200);
      return;
    }
    this.#pending.push({ pairs: keys, lane: only });
    if (!this.#sending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#sending = true;
    try {
      for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift())
        await this.player.change(next.pairs, next.lane);
      this.complain("");
    } catch (error) {
      this.complain(error instanceof Error ? error.message : String(error));
    }
    this.#sending = false;
    this.player.lanes.forEach(({ changes }, index) => {
      const of = this.begun.lanes[index];
      if (of !== undefined) of.changes = changes;
    });
    this.view.build(laneNames(this.begun), this.player.lanes[0]?.data.classes ?? [], this.#top());
    this.#address();
    this.#draw(true);
  }

  async tell(story: Story): Promise<void> {
    this.state = structuredClone(story.state);
    this.state.story = story.id;
    await this.begin(true);
    this.play(true);
  }

  play(on: boolean): void {
    this.player.isPlaying = on;
    const button = byId("play");
    button.setAttribute("aria-pressed", String(on));
    say(button, on ? "Pause" : "Play");
    if (!on) this.#describedAt = -1;
  }

  async back(to: number): Promise<void> {
    this.play(false);
    await this.player.back(Math.min(to, this.player.time));
    this.stories.show(this.begun.story);
    this.#address();
    this.#draw(true);
  }

  /** The lane as it would be without its last change, as one more lane. */
  async without(index: number): Promise<void> {
    const at = this.player.lanes.length < MOST_LANES ? this.player.lanes.length : MOST_LANES - 1;
    const of = this.begun.lanes[index];
    if (of === undefined || at === index) return;
    const other = await this.player.without(index, at);
    this.begun.lanes[at] = { ...lane(of.kind, { ...of.parameters }), changes: other.changes };
    const shown = this.state.lanes[index];
    if (shown !== undefined) this.state.lanes[at] = lane(shown.kind, { ...of.parameters });
    this.controls.build();
    this.#build();
    this.#address();
  }

  async copy(): Promise<void> {
    this.#address();
    try {
      await navigator.clipboard.writeText(location.href);
      say(byId("progress-note"), "The address is copied.");
    } catch {
      say(byId("progress-note"), "The address above is this run.");
    }
  }

  /** Draws everything as wide as a sheet and in ink, or as on the screen again. */
  paper(on: boolean): void {
    document.documentElement.toggleAttribute("data-print", on);
    this.#build();
  }

  /** A file for each lane, up to the moment that is shown. */
  async download(): Promise<void> {
    await saveLanes(this.begun, this.player, (progress) => say(byId("progress-note"), progress));
  }

  #address(): void {
    history.replaceState(null, "", `#${toAddress(this.begun)}`);
  }

  complain(message: string): void {
    const place = byId("problem");
    place.hidden = message === "";
    say(place, message);
  }

  /** A frame. */
  tick(now: number): void {
    this.player.tick(now);
    const isDue = now - this.#renewed >= RENEW;
    if (isDue) this.#renewed = now;
    // What came after the last full frame is shown, even if nothing moves any more.
    if (isDue && this.player.time !== this.#describedAt) this.#draw(true);
    else if (this.player.time !== this.#drawnAt && !this.#calm.matches) this.#draw(false);
    if (this.player.isOver && this.player.isPlaying) this.play(false);
  }

  #draw(everything: boolean): void {
    const { player } = this;
    this.#drawnAt = player.time;
    this.view.draw(everything && !player.isPlaying);
    this.numbers.drawGauges(player);
    say(byId("time"), clock(player.time));
    if (!everything) return;
    this.#describedAt = player.time;
    this.numbers.drawTable(player);
    this.stories.tell(player);
    drawNetwork(this.state);
    const scrub = byId<HTMLInputElement>("scrub");
    if (document.activeElement !== scrub || player.isPlaying) {
      scrub.max = player.time.toFixed(1);
      scrub.value = scrub.max;
    }
    player.lanes.forEach(({ changes }, index) => {
      const button = document.querySelector<HTMLButtonElement>(`[data-lane="${index}"] .without`);
      if (button !== null) button.disabled = changes.length === 0 || index === MOST_LANES - 1;
    });
  }
}

async function main(): Promise<void> {
  const first = compiled(bytes);
  const page = new Page({ first: () => first, more });
  const isFirst = location.hash === "";
  await page.begin(
    true,
    page.state.lanes.map(({ changes }) => [...changes]),
  );
  if (isFirst) await page.player.step(HEAD_START);
  say(byId("engine"), `Engine ${page.player.engine}.`);
  page.play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  const frame = (now: number) => {
    page.tick(now);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  Object.assign(globalThis, { playground: page });
}

void main();
