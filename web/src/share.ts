// Ways out of the page: a scenario for the command line, with the numbers that it will print.
import { ms, percent } from "./format.js";
import { linkNamed } from "./links.js";
import type { Player } from "./player.js";
import { named } from "./scenario.js";
import type { State } from "./state.js";
import { LETTERS } from "./view.js";

interface LinkSummary {
  utilization?: number;
  sojourn_mean_s?: number;
  sojourn_p99_s?: number;
}

interface Summary {
  links?: Record<string, Record<string, LinkSummary>>;
}

/** Lines of comment at the head of a scenario: what to run, and what will come out. */
function head(file: string, summary: string): string {
  const { links } = JSON.parse(summary) as Summary;
  const forward = links?.bottleneck?.forward ?? {};
  const lines = [
    `aqmlab run ${file}`,
    "",
    "What it prints of the link, forward:",
    `  utilization    ${forward.utilization}  (${percent(forward.utilization ?? 0)})`,
    `  sojourn_mean_s ${forward.sojourn_mean_s}  (${ms(1000 * (forward.sojourn_mean_s ?? 0))})`,
    `  sojourn_p99_s  ${forward.sojourn_p99_s}  (${ms(1000 * (forward.sojourn_p99_s ?? 0))})`,
  ];
  return `${lines.map((line) => `# ${line}`.trimEnd()).join("\n")}\n\n`;
}

/** Gives a text to the user as a file. */
function save(file: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/toml" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A file for each lane, up to the moment that is shown, and the file that they name. */
export async function saveLanes(begun: State, player: Player, tell: (text: string) => void): Promise<void> {
  const time = Math.max(1, Math.ceil(player.time));
  for (const [index, lane] of begun.lanes.entries()) {
    const letter = LETTERS[index] ?? "";
    const file = `lane-${letter.toLowerCase()}-${lane.kind}.toml`;
    const text = named(begun, lane, time);
    tell(`Running lane ${letter} for ${time} s …`);
    save(file, head(file, await player.report(index, text)) + text.scenario);
  }
  const beside = linkNamed(begun.link)?.file;
  if (beside !== undefined) save(beside.name, beside.text);
  tell(`Saved ${begun.lanes.length} scenarios.`);
}
