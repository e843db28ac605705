import { afterEach, expect, it, vi } from "vitest";
import type { WorkerOrder, WorkerReport } from "../../src/media/traffic";
import type { OpenedFrame } from "../../src/sframe/traffic";

vi.mock("../../src/decode/decoders", () => ({ loadDecoders: async () => new Map() }));
vi.mock("../../src/decode/helpers", () => ({ HelperWorkers: class {} }));
afterEach(() => vi.unstubAllGlobals());

it("drops the frames of a line's former track, whose numbers would make those of the next one late", async () => {
  const numbers: number[] = [];
  const worker = { postMessage: (report: WorkerReport) => report.type === "frame" && numbers.push(report.number) } as { onmessage?: (event: { data: WorkerOrder }) => void };
  vi.stubGlobal("self", worker);
  vi.stubGlobal("MessageChannel", class {
    port1 = {};
    port2 = {};
  });
  await import("../../src/media/worker");
  const port = {} as { onmessage: (event: { data: OpenedFrame }) => void };
  const order = (data: WorkerOrder): void => worker.onmessage!({ data });
  const arrive = (number: number, received: number): void => port.onmessage({ data: { frame: { quality: 0, number, length: 0, codec: "", captured: NaN, data: new Uint8Array(0) }, received } });
  order({ type: "line", mid: "1", decode: false, port: port as unknown as MessagePort });
  arrive(60, 900);
  arrive(61, 933);
  order({ type: "assigned", mid: "1", since: 1000 });
  arrive(62, 999);
  arrive(5, 1000);
  arrive(6, 1033);
  expect(numbers).toEqual([60, 61, 5, 6]);
});
