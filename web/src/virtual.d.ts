declare module "virtual:engine" {
  /** The WebAssembly module, a character for each byte. */
  const bytes: string;
  export default bytes;
}

declare module "*?worker&inline" {
  const InlineWorker: new () => Worker;
  export default InlineWorker;
}
