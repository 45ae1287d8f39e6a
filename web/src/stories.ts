// Stories: a state, and statements about what it shows. A test runs each and checks every statement.
import { mbit, ms, percent, times } from "./format.js";
import { lane, type State, start, transfers } from "./state.js";
import type { Span } from "./stats.js";
import { QUEUES, TIMERS } from "./why.js";

/** The numbers of a statement: those of each lane over its span of time. */
export type Lanes = [Span, Span, Span];

export interface Statement {
  /** It is about these simulated seconds, and appears when they have passed. */
  from: number;
  to: number;
  /** The part of the page where it can be seen. */
  part: "delay" | "responses" | "numbers" | "cards";
  text: (lanes: Lanes) => string;
  /** Whether the text is true of the numbers. */
  holds: (lanes: Lanes) => boolean;
}

export interface Story {
  id: string;
  title: string;
  intro: string;
  /** What to try next. */
  next: string;
  state: State;
  statements: Statement[];
}

/** The opinion of the call's listener; 0 if there is none yet. */
const opinion = (span: Span) => span.opinion("call") ?? 0;
const score = (span: Span) => opinion(span).toFixed(1);

/** The shares of their time that the slowest tenth of web requests waits for timers, and in queues. */
const timers = (span: Span) => span.spent("web", 0.1).get(TIMERS) ?? 0;
const queues = (span: Span) => span.spent("web", 0.1).get(QUEUES) ?? 0;

/** Whether neither group of transfers has more than so many times what the other has. */
function evenly(span: Span, most: number): boolean {
  const ratio = span.throughput("transfers-1") / span.throughput("transfers-2");
  return ratio < most && ratio > 1 / most;
}

const none = transfers(0, "cubic", 40);

export const STORIES: Story[] = [
  {
    id: "bufferbloat",
    title: "Bufferbloat and its cure",
    intro:
      "Two downloads, a few web users and a phone call share a 10 Mbit/s link. Lane A has a long plain buffer, lane B the same buffer under CoDel, lane C under FQ-CoDel.",
    next: "Make the buffer shorter, and watch lane A.",
    state: {
      ...start(),
      rate: 10,
      buffer: 1000,
      transfers: [transfers(2, "cubic", 40), none],
      web: 10,
      call: true,
      lanes: [lane("droptail"), lane("codel"), lane("fq-codel")],
      speed: 5,
    },
    statements: [
      {
        from: 10,
        to: 40,
        part: "delay",
        text: ([a, b]) =>
          `Downloads fill the plain buffer: a packet waits ${ms(a.meanDelay())} on average, under CoDel ${ms(b.meanDelay())}.`,
        holds: ([a, b]) => a.meanDelay() > 300 && b.meanDelay() < 30,
      },
      {
        from: 10,
        to: 40,
        part: "numbers",
        text: ([a, b]) =>
          `The cure costs little: the link is in use ${percent(a.use())} of the time in lane A, ${percent(b.use())} in lane B.`,
        holds: ([a, b]) => a.use() > 0.97 && b.use() > 0.9,
      },
      {
        from: 10,
        to: 60,
        part: "numbers",
        text: ([a, b, c]) =>
          `A listener would give the call ${score(a)} of 4.5 points behind the plain buffer, ${score(b)} behind CoDel and ${score(c)} behind FQ-CoDel (the E-model's opinion score).`,
        holds: ([a, b, c]) => opinion(a) < 3.5 && opinion(b) > opinion(a) + 0.5 && opinion(c) > 4,
      },
      {
        from: 0,
        to: 60,
        part: "responses",
        text: ([a, b, c]) =>
          `Half of the web requests take more than ${ms(a.medianResponse("web"))} behind the plain buffer, ${ms(b.medianResponse("web"))} behind CoDel, and ${ms(c.medianResponse("web"))} where FQ-CoDel serves flows in turns.`,
        holds: ([a, b, c]) =>
          a.medianResponse("web") > 3 * b.medianResponse("web") &&
          b.medianResponse("web") >= c.medianResponse("web"),
      },
    ],
  },
  {
    id: "synchronization",
    title: "Many windows in step, and RED",
    intro:
      "Twelve Reno transfers with one round trip share 20 Mbit/s. A full drop-tail queue drops packets of many of them at once; RED drops a few early, at random.",
    next: "Open the parameters of lane B and raise max p.",
    state: {
      ...start(),
      rate: 20,
      buffer: 100,
      transfers: [transfers(12, "reno", 100), none],
      web: 0,
      call: false,
      lanes: [
        lane("droptail"),
        lane("red", {
          min_th: "20 packets",
          max_th: "120 packets",
          max_p: "0.03",
          w_q: "0.01",
          gentle: "true",
          limit: "300 packets",
          mean_packet: "1500 bytes",
        }),
      ],
      speed: 5,
    },
    statements: [
      {
        from: 20,
        to: 60,
        part: "delay",
        text: ([a, b]) =>
          `Behind drop-tail the transfers lose packets together and slow down together: nine tenths of the time the delay is somewhere between ${ms(a.delay(0.05))} and ${ms(a.delay(0.95))}. Under RED it is between ${ms(b.delay(0.05))} and ${ms(b.delay(0.95))}.`,
        holds: ([a, b]) => a.delay(0.95) - a.delay(0.05) > 2 * (b.delay(0.95) - b.delay(0.05)),
      },
      {
        from: 20,
        to: 60,
        part: "delay",
        text: ([a, b]) =>
          `RED keeps the queue shorter: ${ms(b.meanDelay())} on average, drop-tail ${ms(a.meanDelay())}.`,
        holds: ([a, b]) => b.meanDelay() < a.meanDelay(),
      },
    ],
  },
  {
    id: "thresholds",
    title: "Why thresholds matter",
    intro:
      "Web users load a 10 Mbit/s link to about nine tenths, as in Christiansen and others (2000). Lane A is drop-tail, lanes B and C are RED with low and with high thresholds.",
    next: "Change the thresholds of lane B during the run, then compare without the change.",
    state: {
      ...start(),
      rate: 10,
      buffer: 200,
      transfers: [none, none],
      web: 980,
      webRtt: 80,
      call: false,
      lanes: [
        lane("droptail"),
        lane("red", { min_th: "5 packets", max_th: "15 packets", limit: "480 packets" }),
        lane("red", { min_th: "30 packets", max_th: "90 packets", limit: "480 packets" }),
      ],
      speed: 10,
    },
    statements: [
      {
        from: 20,
        to: 120,
        part: "numbers",
        text: ([a, b, c]) =>
          `The users keep the link ${percent(a.use())} busy behind drop-tail. Low thresholds drop bursts that would have passed: lane B drops ${percent(b.dropShare())} of the packets, lane C ${percent(c.dropShare())}.`,
        holds: ([a, b, c]) => Math.abs(a.use() - 0.9) < 0.03 && b.dropShare() > 1.2 * c.dropShare(),
      },
      {
        from: 20,
        to: 120,
        part: "responses",
        text: ([a, b, c]) =>
          `One in twenty requests takes longer than ${ms(b.responseQuantile("web", 0.95))} in lane B, ${ms(c.responseQuantile("web", 0.95))} in lane C and ${ms(a.responseQuantile("web", 0.95))} behind drop-tail: RED with the wrong thresholds is worse than none.`,
        holds: ([a, b, c]) =>
          b.responseQuantile("web", 0.95) > c.responseQuantile("web", 0.95) &&
          b.responseQuantile("web", 0.95) > a.responseQuantile("web", 0.95),
      },
    ],
  },
  {
    id: "fairness",
    title: "Unfair by round trip, and fair queueing",
    intro:
      "Two transfers with a round trip of 20 ms (Transfers 1) meet two with 200 ms (Transfers 2), all with Reno. In lane A they share one queue, in lane B each has its own.",
    next: "Give both groups CUBIC, or BBR.",
    state: {
      ...start(),
      rate: 20,
      buffer: 100,
      transfers: [transfers(2, "reno", 20), transfers(2, "reno", 200)],
      web: 0,
      call: false,
      lanes: [lane("droptail"), lane("fq-codel")],
      speed: 5,
    },
    statements: [
      {
        from: 30,
        to: 90,
        part: "cards",
        text: ([a]) =>
          `In one queue the short round trips get ${times(a.throughput("transfers-1") / a.throughput("transfers-2"))} as much: ${mbit(a.throughput("transfers-1"))} against ${mbit(a.throughput("transfers-2"))}.`,
        holds: ([a]) => a.throughput("transfers-1") > 2 * a.throughput("transfers-2"),
      },
      {
        from: 30,
        to: 90,
        part: "cards",
        text: ([, b]) =>
          `FQ-CoDel serves flows in turns: ${mbit(b.throughput("transfers-1"))} against ${mbit(b.throughput("transfers-2"))}.`,
        holds: ([a, b]) =>
          b.throughput("transfers-1") / b.throughput("transfers-2") <
          0.7 * (a.throughput("transfers-1") / a.throughput("transfers-2")),
      },
    ],
  },
  {
    id: "ecn",
    title: "Marks instead of drops",
    intro:
      "Four transfers that know ECN. CoDel drops in lane A; in lane B it marks: the sender slows down, and nothing is lost.",
    next: "Take ECN away from the transfers: marks are for those who understand them.",
    state: {
      ...start(),
      rate: 10,
      buffer: 500,
      transfers: [transfers(4, "cubic", 40, { ecn: true }), none],
      web: 0,
      call: false,
      lanes: [lane("codel", { ecn: "false" }), lane("codel", { ecn: "true" })],
      speed: 5,
    },
    statements: [
      {
        from: 10,
        to: 60,
        part: "delay",
        text: ([a, b]) =>
          `Lane A dropped ${a.drops} packets, lane B ${b.drops}; lane B marked ${b.marks} instead.`,
        holds: ([a, b]) => a.drops > 100 && b.drops < a.drops / 20 && b.marks > 100,
      },
      {
        from: 10,
        to: 60,
        part: "numbers",
        text: ([a, b]) =>
          `The queue is about as short: ${ms(a.meanDelay())} with drops, ${ms(b.meanDelay())} with marks.`,
        holds: ([a, b]) => b.meanDelay() < 2 * a.meanDelay() && a.meanDelay() < 2 * b.meanDelay(),
      },
    ],
  },
  {
    id: "l4s",
    title: "L4S beside classic traffic",
    intro:
      "One Prague transfer, which slows down a little at each mark, and one CUBIC transfer share 40 Mbit/s. Lane A is drop-tail, lane B FQ-CoDel, lane C DualPI2, whose two queues are coupled.",
    next: "Add more CUBIC transfers (Transfers 2).",
    state: {
      ...start(),
      rate: 40,
      buffer: 200,
      transfers: [transfers(1, "prague", 20, { ecn: true }), transfers(1, "cubic", 20)],
      web: 0,
      call: false,
      lanes: [lane("droptail"), lane("fq-codel"), lane("dualpi2")],
      speed: 2,
    },
    statements: [
      {
        from: 10,
        to: 40,
        part: "cards",
        text: ([a, , c]) =>
          `Through DualPI2 Prague's round trip is ${ms(c.meanRtt("transfers-1"))}, next to the 20 ms of the path; CUBIC's is ${ms(c.meanRtt("transfers-2"))}. Behind drop-tail Prague has to wait as long as CUBIC: ${ms(a.meanRtt("transfers-1"))}.`,
        holds: ([a, , c]) =>
          c.meanRtt("transfers-1") < 24 &&
          c.meanRtt("transfers-2") > c.meanRtt("transfers-1") + 5 &&
          a.meanRtt("transfers-1") > 60,
      },
      {
        from: 10,
        to: 40,
        part: "cards",
        text: ([, , c]) =>
          `And yet they share: Prague gets ${mbit(c.throughput("transfers-1"))}, CUBIC ${mbit(c.throughput("transfers-2"))}.`,
        holds: ([, , c]) => {
          const ratio = c.throughput("transfers-1") / c.throughput("transfers-2");
          return ratio > 0.4 && ratio < 2.5;
        },
      },
    ],
  },
  {
    id: "why",
    title: "Why RED hurts the tail",
    intro:
      "Web users load a 10 Mbit/s link to about nine tenths. Lane A is drop-tail. Lane B is RED with low thresholds: it drops packets of bursts early. This story computes where the time of every response goes.",
    next: "Click a point of the distribution: the page says which parts made that response slow.",
    state: {
      ...start(),
      rate: 10,
      buffer: 200,
      transfers: [none, none],
      web: 980,
      webRtt: 80,
      call: false,
      why: true,
      lanes: [
        lane("droptail"),
        lane("red", { min_th: "5 packets", max_th: "15 packets", limit: "480 packets" }),
      ],
      speed: 10,
    },
    statements: [
      {
        from: 20,
        to: 100,
        part: "responses",
        text: ([a, b]) =>
          `RED keeps the queue short, so most responses are faster: half of them take at most ${ms(b.medianResponse("web"))}, behind drop-tail ${ms(a.medianResponse("web"))}.`,
        holds: ([a, b]) => b.medianResponse("web") < a.medianResponse("web"),
      },
      {
        from: 20,
        to: 100,
        part: "responses",
        text: ([a, b]) =>
          `The slow ones are slower: one in twenty takes longer than ${ms(b.responseQuantile("web", 0.95))} under RED, and ${ms(a.responseQuantile("web", 0.95))} behind drop-tail.`,
        holds: ([a, b]) => b.responseQuantile("web", 0.95) > 1.1 * a.responseQuantile("web", 0.95),
      },
      {
        from: 20,
        to: 100,
        part: "responses",
        text: ([a, b]) =>
          `The slowest tenth under RED spends ${percent(timers(b))} of its time ${TIMERS}, and ${percent(queues(b))} ${QUEUES}. Behind drop-tail it is ${percent(timers(a))} and ${percent(queues(a))}.`,
        holds: ([a, b]) => timers(b) > timers(a) + 0.1 && queues(b) < queues(a),
      },
    ],
  },
  {
    id: "quic",
    title: "QUIC beside TCP",
    intro:
      "Two transfers over TCP (Transfers 1) and two over QUIC (Transfers 2) share 20 Mbit/s. All have CUBIC and a round trip of 40 ms. In lane A they share one queue, in lane B each has its own.",
    next: "Give the QUIC transfers another congestion control, or both a shorter buffer.",
    state: {
      ...start(),
      rate: 20,
      buffer: 100,
      transfers: [transfers(2, "cubic", 40), transfers(2, "cubic", 40, { quic: true })],
      web: 0,
      call: false,
      lanes: [lane("droptail"), lane("fq-codel")],
      speed: 5,
    },
    statements: [
      {
        from: 20,
        to: 80,
        part: "cards",
        text: ([a]) =>
          `In one queue TCP gets ${mbit(a.throughput("transfers-1"))} and QUIC ${mbit(a.throughput("transfers-2"))}. A window grows by packets: QUIC's carry 1,200 bytes each, those of TCP 1,448.`,
        holds: ([a]) => !evenly(a, 1.2) && evenly(a, 2.5),
      },
      {
        from: 20,
        to: 80,
        part: "cards",
        text: ([, b]) =>
          `FQ-CoDel serves flows in turns, of whichever transport: ${mbit(b.throughput("transfers-1"))} and ${mbit(b.throughput("transfers-2"))}.`,
        holds: ([, b]) => evenly(b, 1.15),
      },
    ],
  },
];

/** What the page shows before anybody has asked for something: the first story. */
export function opening(): State {
  const [first] = STORIES;
  return first === undefined ? start() : { ...structuredClone(first.state), story: first.id };
}
