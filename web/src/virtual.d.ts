declare module "virtual:engine" {
  /** The WebAssembly module, a character for each byte. */
  const bytes: string;
  export default bytes;
}

declare module "*?worker&inline" {
  const InlineWorker: new () => Worker;
  export default InlineWorker;
}

declare module "virtual:links" {
  /** A value of TOML. */
  export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };

  /** A link as its file has it. */
  export interface Profile {
    name: string;
    title: string;
    /** The round trip of the idle path. */
    rtt: string;
    bottleneck: {
      readonly [key: string]: Value;
      forward: { readonly [key: string]: Value };
      reverse: { readonly [key: string]: Value };
    };
    /** Where its numbers come from, by key of the bottleneck; `rtt` is that of the path. */
    sources: Record<string, string>;
    /** What other testers call such a link. */
    names?: string[];
    /** What such links have in the world and this one has not. */
    leaves_out?: string;
    /** The bottleneck as a scenario has it. */
    text: string;
  }

  export const profiles: Profile[];
  /** The text of each file that a profile names. */
  export const files: Record<string, string>;
}
