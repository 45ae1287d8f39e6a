// The page as a few classic scripts beside index.html: a browser opens it from a folder, where
// neither modules nor fetch work.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { links } from "./profiles.ts";

const MODULE = "pkg/aqmlab_bg.wasm";
const MORE = "pkg/more/aqmlab_bg.wasm";

/** Characters that a string needs escaped; shorter than JSON's escapes. */
const ESCAPES: Record<string, string> = { "\0": "\\x00", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\" };

/** A module as a string with a character for each byte, in JavaScript. */
function text(file: URL): string {
  const bytes = readFileSync(file).toString("latin1");
  return `"${bytes.replace(/[\0\n\r"\\]/g, (one) => ESCAPES[one] ?? one)}"`;
}

/** `virtual:engine`: the WebAssembly module as a string with a character for each byte. */
function engine(): Plugin {
  const id = "virtual:engine";
  return {
    name: "engine",
    resolveId: (name) => (name === id ? `\0${id}` : null),
    load(name) {
      if (name !== `\0${id}`) return null;
      const file = new URL(MODULE, import.meta.url);
      this.addWatchFile(file.pathname);
      return `export default ${text(file)};`;
    },
  };
}

/** `more.js`: the second engine, a script that the page loads when somebody asks for it. */
function more(): Plugin {
  return {
    name: "more",
    generateBundle() {
      const source = `globalThis.aqmlabMore = ${text(new URL(MORE, import.meta.url))};`;
      this.emitFile({ type: "asset", fileName: "more.js", source });
    },
  };
}

/** The style sheets inside the page: it never shows without them. */
function styles(): Plugin {
  const read = (file: string) => readFileSync(new URL(file, import.meta.url), "utf8");
  return {
    name: "styles",
    transformIndexHtml: {
      order: "pre",
      handler: (html) =>
        html.replace(
          '<link rel="stylesheet" href="./src/style.css" />',
          `<style>${read("node_modules/uplot/dist/uPlot.min.css")}${read("src/style.css")}</style>`,
        ),
    },
  };
}

/** Classic scripts: what a page opened from a folder may load. */
function classic(): Plugin {
  return {
    name: "classic",
    enforce: "post",
    transformIndexHtml: (html) => html.replace(/<script type="module" crossorigin/g, "<script defer"),
  };
}

export default defineConfig({
  base: "./",
  plugins: [engine(), more(), links(), styles(), classic()],
  worker: { format: "iife" },
  build: {
    outDir: "../site/playground",
    emptyOutDir: true,
    modulePreload: false,
    target: "es2022",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 5000,
    rolldownOptions: {
      output: {
        format: "iife",
        entryFileNames: "playground.js",
        assetFileNames: "playground.[ext]",
      },
    },
  },
});
