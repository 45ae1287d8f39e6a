// The engines as the page has them: strings with a character for each byte.

export function compiled(bytes: string): Promise<WebAssembly.Module> {
  return WebAssembly.compile(Uint8Array.from(bytes, (character) => character.charCodeAt(0)));
}

let second: Promise<WebAssembly.Module> | null = null;

/** The second engine. It is a script: a page that was opened from a folder may fetch nothing. */
export function more(): Promise<WebAssembly.Module> {
  second ??= loaded("more.js").then(() => compiled((globalThis as { aqmlabMore?: string }).aqmlabMore ?? ""));
  // Who asks again after an error tries again.
  second.catch(() => {
    second = null;
  });
  return second;
}

function loaded(file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = file;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`${file}: cannot be loaded; it belongs beside index.html`));
    document.head.append(script);
  });
}
