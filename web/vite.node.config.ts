// The engine and the stories for tests in Node: build/headless.js.
import { defineConfig } from "vite";
import { links } from "./profiles.ts";

export default defineConfig({
  plugins: [links()],
  build: {
    ssr: "src/headless.ts",
    outDir: "build",
    target: "node20",
    minify: false,
    rolldownOptions: { output: { entryFileNames: "headless.js" } },
  },
});
