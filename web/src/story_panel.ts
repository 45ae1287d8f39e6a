// The stories: buttons, and the statements of the story that runs.
import { byId, h, say } from "./dom.js";
import type { Player } from "./player.js";
import { Span } from "./stats.js";
import { type Lanes, STORIES, type Statement, type Story } from "./stories.js";

/** The numbers of a statement. */
export function lanesOf(datas: ConstructorParameters<typeof Span>[0][], { from, to }: Statement): Lanes {
  return datas.map((data) => new Span(data, from, to)) as Lanes;
}

export class StoryPanel {
  #lines: HTMLElement[] = [];
  #shown: Story | null = null;

  constructor(readonly chosen: (story: Story) => void) {
    byId("stories").replaceChildren(
      ...STORIES.map((story) =>
        h(
          "button",
          { type: "button", "data-story": story.id, "aria-pressed": "false", click: () => chosen(story) },
          story.title,
        ),
      ),
    );
  }

  /** Shows a story from its beginning; with none, none. */
  show(id: string): void {
    this.#shown = STORIES.find((story) => story.id === id) ?? null;
    for (const button of byId("stories").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.story === id));
    const panel = byId("story");
    panel.hidden = this.#shown === null;
    if (this.#shown === null) {
      panel.replaceChildren();
      this.#point(null);
      return;
    }
    const { intro, next, statements } = this.#shown;
    this.#lines = statements.map(({ to }) => h("li", { class: "later" }, `… at ${to} s`));
    panel.replaceChildren(
      h("p", {}, intro),
      h("ol", {}, ...this.#lines),
      h("p", { class: "quiet" }, `Try: ${next}`),
    );
  }

  /** Shows the statements that have come true. */
  tell(player: Player): void {
    let last: Statement | null = null;
    for (const [index, statement] of (this.#shown?.statements ?? []).entries()) {
      const line = this.#lines[index];
      if (line === undefined) continue;
      const isDue = player.time >= statement.to - 1e-6;
      if (isDue) last = statement;
      if (line.classList.contains("later") !== isDue) continue;
      line.classList.toggle("later", !isDue);
      const datas = player.lanes.map(({ data }) => data);
      say(line, isDue ? statement.text(lanesOf(datas, statement)) : `… at ${statement.to} s`);
    }
    this.#point(last);
  }

  /** Outlines the part of the page that the last statement is about. */
  #point(statement: Statement | null): void {
    for (const card of document.querySelectorAll<HTMLElement>("[data-part]"))
      card.classList.toggle("pointed", card.dataset.part === statement?.part);
  }
}
