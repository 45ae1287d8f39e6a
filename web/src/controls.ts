// The form: link, traffic, lanes. It reports what it changes in the state to its maker.
import { DISCIPLINES, KINDS, parametersOf, shortName } from "./catalog.js";
import { byId, h } from "./dom.js";
import { check, choice, parameterField, slider, whole } from "./fields.js";
import { mbit, ms } from "./format.js";
import { LINKS, type Link, linkNamed, numbersOf, OWN } from "./links.js";
import { GROUPS, stated } from "./scenario.js";
import {
  bufferPackets,
  CONTROL_NAMES,
  CONTROLS,
  chooseLink,
  isLimitedUp,
  kindOf,
  lane,
  MOST_LANES,
  RANGES,
  type State,
  type Transfers,
  unfit,
} from "./state.js";
import { LETTERS } from "./view.js";

/** What became of the state, and which changes the running lanes can take. */
export interface Edit {
  /** Keys and values for running lanes; none: the lanes begin anew. */
  live?: [key: string, value: string][];
  /** The only lane that it is about. */
  lane?: number;
  /** Whether the form must be made anew. */
  form?: boolean;
}

const LINK = "bottleneck.forward";
const WAY_BACK = "bottleneck.reverse";

/** What a link is, and its numbers with their sources. */
function described(link: Link): HTMLElement[] {
  const { title, names = [], leaves_out: without } = link;
  const others = names.length === 0 ? "" : ` Others call it ${names.join(", ")}.`;
  const left = without === undefined ? "" : ` It leaves out ${without}.`;
  const numbers = numbersOf(link).flatMap(([key, value, source]) => [
    h(
      "dt",
      {},
      h("span", {}, key === "rtt" ? "round trip" : key.replaceAll(/[._]/g, " ")),
      h("span", {}, value),
    ),
    h("dd", {}, source),
  ]);
  return [
    h("p", { id: "link-about" }, `${title}.${others}${left}`),
    h("dl", { id: "link-numbers" }, ...numbers),
  ];
}

export class Controls {
  constructor(
    readonly state: () => State,
    readonly edited: (edit: Edit) => void,
    readonly withoutChange: (lane: number) => void,
  ) {}

  /** Makes the form of the present state. */
  build(): void {
    const link = byId("link");
    const traffic = byId("traffic");
    const lanes = byId("lanes");
    for (const section of [link, traffic, lanes])
      section.replaceChildren(...[...section.children].slice(0, 1));
    link.append(...this.#link());
    traffic.append(...this.#traffic());
    lanes.append(...this.#lanes());
  }

  #link(): HTMLElement[] {
    const { link } = this.state();
    const names = LINKS.map((one) => [one.name, `${one.name}: ${one.title}`, unfit(one)] as const);
    const which = choice("Which link", [["", "your own, by sliders"], ...names], link, (value) => {
      chooseLink(this.state(), value);
      this.edited({ form: true });
    });
    const chosen = linkNamed(link);
    return [which, ...(chosen === undefined ? this.#sliders() : described(chosen))];
  }

  #sliders(): HTMLElement[] {
    const state = this.state();
    const buffer = slider(
      "Buffer",
      RANGES.buffer,
      {
        value: state.buffer,
        log: true,
        said: (value) => `${ms(value)} = ${bufferPackets({ ...state, buffer: value })} packets`,
      },
      (value) => {
        const now = this.state();
        now.buffer = value;
        const back: [string, string][] = isLimitedUp(now)
          ? [[`${WAY_BACK}.discipline.limit`, `${bufferPackets(now, "reverse")} packets`]]
          : [];
        this.edited({ live: [[`${LINK}.discipline.limit`, `${bufferPackets(now)} packets`], ...back] });
      },
    );
    const rate = slider("Rate", RANGES.rate, { value: state.rate, log: true, said: mbit }, (value) => {
      const now = this.state();
      // The buffer is so many packets: at another rate they last longer or less long.
      now.buffer = Number(((now.buffer * now.rate) / value).toPrecision(6));
      now.rate = value;
      buffer.show(now.buffer);
      this.edited({ live: [[`${LINK}.rate`, `${value} Mbit/s`]] });
    });
    const up = slider(
      "Rate of the way back",
      RANGES.up,
      { value: state.up, log: true, said: (value) => (value < RANGES.up[1] ? mbit(value) : "never full") },
      (value) => {
        this.state().up = value;
        this.edited({ form: true });
      },
    );
    const delay = slider(
      "Delay of the link",
      RANGES.delay,
      {
        value: state.delay,
        whole: true,
        said: (value) => (value === 0 ? "none" : `${ms(value)} more in every round trip`),
      },
      (value) => {
        this.state().delay = value;
        this.edited({ live: [[`${LINK}.delay`, `${value} ms`]] });
      },
    );
    return [rate, buffer, delay, up];
  }

  #traffic(): HTMLElement[] {
    const state = this.state();
    const web = slider(
      "Web users",
      RANGES.web,
      { value: state.web, log: true, whole: true, said: (value) => (value === 0 ? "none" : String(value)) },
      (value) => {
        const before = this.state().web;
        this.state().web = value;
        this.edited(before > 0 && value > 0 ? { live: [["traffic.web.users", String(value)]] } : {});
      },
    );
    const rtt = slider(
      "Their round trip",
      RANGES.rtt,
      { value: state.webRtt, log: true, said: ms },
      (value) => {
        this.state().webRtt = value;
        this.edited({});
      },
    );
    const video = slider(
      "Viewers of video",
      RANGES.video,
      { value: state.video, whole: true, said: (value) => (value === 0 ? "none" : String(value)) },
      (value) => {
        this.state().video = value;
        this.edited({});
      },
    );
    const call = check("A phone call, heard by a user", state.call, (on) => {
      this.state().call = on;
      this.edited({});
    });
    const seed = whole("Seed of the random numbers", state.seed, (value) => {
      this.state().seed = value;
      this.edited({});
    });
    const why = check("Parts of every response time, from the start", state.why, (on) => {
      this.state().why = on;
      this.edited({});
    });
    return [
      ...state.transfers.map((group, index) => this.#transfers(group, index)),
      h("fieldset", {}, h("legend", {}, "People"), web, this.#hasRtt() ? rtt : null, video, call, why),
      seed,
    ];
  }

  /** Whether users have round trips of their own: a link that has a name states one for all. */
  #hasRtt(): boolean {
    return this.state().link === "";
  }

  #transfers(group: Transfers, index: number): HTMLElement {
    const flows = slider(
      "How many",
      RANGES.flows,
      { value: group.flows, whole: true, said: (value) => (value === 0 ? "none" : String(value)) },
      (value) => {
        const before = group.flows;
        group.flows = value;
        const key = `traffic.${GROUPS[index]}.flows`;
        this.edited(before > 0 && value > 0 ? { live: [[key, String(value)]] } : {});
      },
    );
    const control = choice(
      "Congestion control",
      CONTROLS.map((name) => [name, CONTROL_NAMES[name]] as const),
      group.control,
      (value) => {
        group.control = CONTROLS.find((known) => known === value) ?? group.control;
        this.edited({});
      },
    );
    const rtt = slider(
      "Round trip without queue",
      RANGES.rtt,
      { value: group.rtt, log: true, said: ms },
      (value) => {
        group.rtt = value;
        this.edited({});
      },
    );
    const ecn = check("ECN: the queue may mark instead of drop", group.ecn, (on) => {
      group.ecn = on;
      this.edited({});
    });
    const over = choice(
      "Transport",
      [
        ["tcp", "TCP"],
        ["quic", "QUIC"],
      ],
      group.quic ? "quic" : "tcp",
      (value) => {
        group.quic = value === "quic";
        this.edited({});
      },
    );
    const way = choice(
      "Direction",
      [
        ["down", "downloads: to the users"],
        ["up", "uploads: from the users"],
      ],
      group.up ? "up" : "down",
      (value) => {
        group.up = value === "up";
        this.edited({});
      },
    );
    const title = `Transfers ${index + 1}, without end`;
    const trip = this.#hasRtt() ? rtt : null;
    return h("fieldset", {}, h("legend", {}, title), flows, over, control, way, trip, ecn);
  }

  /** The directions of the link that have the lane's discipline. */
  #directions(): string[] {
    return isLimitedUp(this.state()) ? [LINK, WAY_BACK] : [LINK];
  }

  #lanes(): HTMLElement[] {
    const { lanes } = this.state();
    const add = h(
      "button",
      {
        type: "button",
        click: () => {
          this.state().lanes.push(lane("codel"));
          this.edited({ form: true });
        },
      },
      "Add a lane",
    );
    return [...lanes.map((_, index) => this.#lane(index)), ...(lanes.length < MOST_LANES ? [add] : [])];
  }

  #lane(index: number): HTMLElement {
    const { lanes } = this.state();
    const one = lanes[index] ?? lane("droptail");
    const names = KINDS.map((kind) => [kind, shortName(kind)] as const);
    const profile = linkNamed(this.state().link);
    const own = profile && ([OWN, `${shortName(profile.forward.kind)}, as the link has it`] as const);
    const kind = choice(
      "Queue discipline",
      [...(own ? [own] : []), ...names.toSorted(([, a], [, b]) => a.localeCompare(b))],
      one.kind,
      (value) => {
        this.state().lanes[index] = lane(value);
        this.edited({ form: true });
      },
    );
    const values = stated(this.state(), one);
    const fields = parametersOf(one.kind).map((parameter) => {
      const value =
        values[parameter.name] ?? (parameter.default === undefined ? "" : String(parameter.default));
      return parameterField(parameter, value, (now) => {
        if (now === "") delete one.parameters[parameter.name];
        else one.parameters[parameter.name] = now;
        this.edited(
          now === ""
            ? { lane: index }
            : {
                lane: index,
                live: this.#directions().map((of) => [`${of}.discipline.${parameter.name}`, now]),
              },
        );
      });
    });
    const shown = fields.filter((field) => field !== null);
    const remove = h(
      "button",
      {
        type: "button",
        click: () => {
          this.state().lanes.splice(index, 1);
          this.edited({ form: true });
        },
      },
      "Remove",
    );
    const without = h(
      "button",
      { type: "button", class: "without", disabled: true, click: () => this.withoutChange(index) },
      "Compare without the last change",
    );
    return h(
      "fieldset",
      { class: "lane-form", "data-lane": index },
      h("legend", { style: `color: var(--lane-${index})` }, `Lane ${LETTERS[index]}`),
      kind,
      h("p", { class: "quiet" }, DISCIPLINES[kindOf(this.state(), one)]?.purpose ?? ""),
      shown.length > 0 ? h("details", {}, h("summary", {}, `Parameters (${shown.length})`), ...shown) : null,
      h("div", { class: "buttons" }, without, lanes.length > 1 ? remove : null),
    );
  }
}
