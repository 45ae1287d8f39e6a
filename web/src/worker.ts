// The worker of a lane: an engine of its own, which answers one request after another.
import { Engine } from "./engine.js";
import type { Answer, Ask } from "./protocol.js";

let engine: Engine | null = null;

function running(): Engine {
  if (engine === null) throw new Error("the engine is not there yet");
  return engine;
}

function answer(request: Ask): unknown {
  switch (request.name) {
    case "engine":
      engine = new Engine(request.ask.module, request.ask.kind);
      return engine.name;
    case "load":
      return running().load(request.ask.scenario, request.ask.file);
    case "advance":
      return running().advance(request.ask.to, request.ask.budget);
    case "set":
      return running().set(request.ask.pairs) ?? null;
    case "back":
      return running().back(request.ask.to);
    case "fork":
      return running().fork();
    case "adopt":
      return running().adopt(request.ask.world);
    case "report":
      return running().report(request.ask.scenario, request.ask.file);
  }
}

/** Frames are handed over; everything else is copied. */
function handedOver(value: unknown): Transferable[] {
  const frame = value as {
    samples?: Float64Array;
    flows?: Float64Array;
    responses?: Float64Array;
    qualities?: Float64Array;
    breakdowns?: Float64Array;
  } | null;
  if (!(frame?.samples instanceof Float64Array)) return [];
  const parts = [frame.samples, frame.flows, frame.responses, frame.qualities, frame.breakdowns];
  return parts.flatMap((part) => (part && part.length > 0 ? [part.buffer as ArrayBuffer] : []));
}

self.onmessage = ({ data }: MessageEvent<Ask>) => {
  let message: Answer;
  let hand: Transferable[] = [];
  try {
    const value = answer(data);
    message = { id: data.id, answer: value };
    hand = handedOver(value);
  } catch (error) {
    message = { id: data.id, error: error instanceof Error ? error.message : String(error) };
  }
  self.postMessage(message, { transfer: hand });
};
