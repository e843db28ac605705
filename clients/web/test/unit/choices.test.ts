import { describe, expect, it } from "vitest";
import { Choices } from "../../src/viewer/choices";

const body = { participant: "ada", publication: "body" };

describe("Choices", () => {
  it("finds a tile's own choice before that of its publication", () => {
    const choices = new Choices();
    expect(choices.of({ ...body, tile: 0 })).toBe("auto");
    choices.set({ ...body, quality: 1 });
    choices.set({ ...body, tile: 2, quality: "auto" });
    expect([0, 1, 2].map((tile) => choices.of({ ...body, tile }))).toEqual([1, 1, "auto"]);
    expect(choices.of({ participant: "grace", publication: "body", tile: 0 })).toBe("auto");
  });

  it("has a choice for the whole take the place of those for tiles, as the server does", () => {
    const choices = new Choices();
    choices.set({ ...body, tile: 2, quality: 0 });
    choices.set({ ...body, quality: -1 });
    expect(choices.of({ ...body, tile: 2 })).toBe(-1);
    expect([...choices]).toEqual([[{ ...body, quality: -1 }]]);
  });

  it("gives them publication by publication, the one for the whole first", () => {
    const choices = new Choices();
    choices.set({ ...body, quality: 1 });
    choices.set({ participant: "grace", publication: "body", tile: 0, quality: 2 });
    choices.set({ ...body, tile: 3, quality: 0 });
    choices.set({ ...body, tile: 3, quality: 2 });
    expect([...choices]).toEqual([
      [{ ...body, quality: 1 }, { ...body, tile: 3, quality: 2 }],
      [{ participant: "grace", publication: "body", tile: 0, quality: 2 }],
    ]);
  });
});
