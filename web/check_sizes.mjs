// What the page costs to load, compressed as web hosts do; an error where it is more than it may be.
import { readdirSync, readFileSync } from "node:fs";
import { brotliCompressSync, constants } from "node:zlib";

const here = (path) => new URL(path, import.meta.url);
// The second engine loads apart from the page, for who asks for it.
const MOST = { engine: 505_000, page: 800_000, "second engine": 680_000 };

function compressed(bytes) {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_LGWIN]: 24,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return brotliCompressSync(bytes, { params }).length;
}

const folder = here("../site/playground/");
const sizes = {
  engine: compressed(readFileSync(here("pkg/aqmlab_bg.wasm"))),
  page: readdirSync(folder)
    .filter((file) => file !== "more.js")
    .reduce((sum, file) => sum + compressed(readFileSync(new URL(file, folder))), 0),
  "second engine": compressed(readFileSync(here("pkg/more/aqmlab_bg.wasm"))),
};
for (const [what, size] of Object.entries(sizes)) {
  console.log(`playground: ${what} ${Math.round(size / 1000)} kB with brotli, at most ${MOST[what] / 1000} kB`);
  if (size > MOST[what]) process.exitCode = 1;
}
