// `virtual:links`: the links that the package names, and the files that they name, read as the page is
// built.
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { parse } from "smol-toml";
import type { Plugin } from "vite";

const ID = "virtual:links";
const PACKAGE = new URL("../python/aqmlab/", import.meta.url);
const FOLDER = new URL("scenario/links/", PACKAGE);
const SCENARIOS = new URL("shipped/scenarios/", PACKAGE);

/** A profile, its bottleneck as a scenario has it; a file stands beside the scenario that names it. */
function profile(file: string) {
  const source = readFileSync(new URL(file, FOLDER), "utf8");
  const [start, end] = [source.indexOf("[bottleneck]"), source.indexOf("[sources]")];
  const text = source
    .slice(start, end)
    .trim()
    .replaceAll("[bottleneck", "[topology.bottleneck")
    .replaceAll(/file = "[^"]*\//g, 'file = "');
  return { name: basename(file, ".toml"), ...parse(source), text };
}

/** The files that profiles name, by their name without folders. */
function files(sources: string[]): Record<string, string> {
  const paths = sources.flatMap((source) =>
    [...source.matchAll(/file = "([^"]+)"/g)].map(([, path]) => path ?? ""),
  );
  return Object.fromEntries(
    [...new Set(paths)].map((path) => [basename(path), readFileSync(new URL(path, SCENARIOS), "utf8")]),
  );
}

export function links(): Plugin {
  return {
    name: "links",
    resolveId: (name) => (name === ID ? `\0${ID}` : null),
    load(name) {
      if (name !== `\0${ID}`) return null;
      const names = readdirSync(FOLDER)
        .filter((file) => file.endsWith(".toml"))
        .sort();
      for (const file of names) this.addWatchFile(new URL(file, FOLDER).pathname);
      const sources = names.map((file) => readFileSync(new URL(file, FOLDER), "utf8"));
      return `export const profiles = ${JSON.stringify(names.map(profile))};
export const files = ${JSON.stringify(files(sources))};`;
    },
  };
}
