// The page's side of a lane's worker.

import type { Answer, Name, Requests } from "./protocol.js";
import EngineWorker from "./worker.ts?worker&inline";

type Waiting = { resolve: (value: never) => void; reject: (error: Error) => void };

export class LaneClient {
  readonly #worker = new EngineWorker();
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("error" in data) waiting?.reject(new Error(data.error));
      else waiting?.resolve(data.answer as never);
    };
    // The engine ends with a trap: every waiting caller gets an error, and the lane begins anew.
    this.#worker.onerror = (event) => {
      event.preventDefault();
      for (const { reject } of this.#waiting.values()) reject(new Error(event.message));
      this.#waiting.clear();
    };
  }

  ask<N extends Name>(name: N, ask: Requests[N]["ask"]): Promise<Requests[N]["answer"]> {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, name, ask });
    });
  }

  close(): void {
    this.#worker.terminate();
  }
}
