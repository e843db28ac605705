import { describe, expect, it } from "vitest";
import { withReferenceTimes } from "../../src/media/answer";
import { FrameOrder } from "../../src/media/order";
import { NewestQueue } from "../../src/media/queue";
import { SlotTable } from "../../src/media/slots";

describe("NewestQueue", () => {
  it("keeps the newest of each line, and serves lines in turn", () => {
    const queue = new NewestQueue<number>();
    queue.put("a", 1);
    queue.put("b", 10);
    queue.put("a", 2);
    queue.put("a", 3);
    expect(queue.take()).toEqual({ line: "a", item: 3, skipped: 2 });
    queue.put("a", 4);
    expect(queue.take()).toEqual({ line: "b", item: 10, skipped: 0 });
    expect(queue.take()).toEqual({ line: "a", item: 4, skipped: 0 });
    expect(queue.take()).toBeUndefined();
  });
});

describe("SlotTable", () => {
  const track = { participant: "ada", publication: "body", tile: 1 };

  it("acknowledges new assignments, and repeated ones once more", () => {
    const slots = new SlotTable();
    expect(slots.assign([{ mid: "3", generation: 1, track }], 5)).toEqual([{ mid: "3", generation: 1 }]);
    expect(slots.assign([{ mid: "3", generation: 1, track }], 9)).toEqual([{ mid: "3", generation: 1 }]);
    expect(slots.get("3")?.since).toBe(5);
    expect(slots.assign([{ mid: "3", generation: 0, track }], 9)).toEqual([]);
  });

  it("acknowledges no idle slot", () => {
    const slots = new SlotTable();
    slots.assign([{ mid: "3", generation: 1, track }], 5);
    expect(slots.assign([{ mid: "3", generation: 2 }], 6)).toEqual([]);
    expect(slots.get("3")?.track).toBeUndefined();
  });

  it("passes over what is said of older assignments", () => {
    const slots = new SlotTable();
    slots.assign([{ mid: "3", generation: 2, track }], 5);
    slots.sending([{ mid: "3", generation: 1, quality: 2, reason: "auto" }]);
    slots.delivery([{ mid: "3", generation: 1, frames: 4 }]);
    expect(slots.get("3")).toMatchObject({ quality: undefined, dropped: 0 });
    slots.sending([{ mid: "3", generation: 2, quality: -1, reason: "unseen" }]);
    slots.delivery([{ mid: "3", generation: 2, frames: 4 }, { mid: "3", generation: 2, frames: 1 }]);
    expect(slots.get("3")).toMatchObject({ quality: -1, reason: "unseen", dropped: 5 });
  });
});

describe("FrameOrder", () => {
  const places = (order: FrameOrder, ...numbers: number[]): string[] => numbers.map((n) => order.place(n));

  it("returns late frames once, and ignores repeated ones", () => {
    const order = new FrameOrder();
    expect(places(order, 5, 7, 6, 6, 7, 8, 5)).toEqual(["newest", "newest", "late", "repeated", "repeated", "newest", "repeated"]);
    expect(order.takeLate()).toEqual([6]);
    expect(order.takeLate()).toEqual([]);
  });

  it("follows numbers across their wrap, and restarts", () => {
    const order = new FrameOrder();
    expect(places(order, 0xffffffff, 1, 0, 5000, 4936, 4935, 4936)).toEqual(["newest", "newest", "late", "newest", "late", "newest", "newest"]);
  });
});

describe("Answers", () => {
  const answer = "a=rtpmap:100 VP8/90000\r\na=rtcp-fb:100 nack\r\na=rtcp-fb:100 nack pli\r\na=rtcp-fb:111 nack\r\n";

  it("accept reference times of the payload types that are offered with them", () => {
    const changed = withReferenceTimes(answer, "a=rtcp-fb:100 nack\r\na=rtcp-fb:100 rrtr\r\n");
    expect(changed).toBe(answer.replace("100 nack\r\n", "100 nack\r\na=rtcp-fb:100 rrtr\r\n"));
    expect(withReferenceTimes(changed, "a=rtcp-fb:100 rrtr\r\n")).toBe(changed);
    expect(withReferenceTimes(answer, "a=rtcp-fb:100 nack\r\n")).toBe(answer);
  });
});
