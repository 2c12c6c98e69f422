import { describe, expect, it } from "vitest";

import { parseEvent, readEvents } from "../src/api/events";
import type { CommentOutput } from "../src/api/proposalTypes";
import { parseInline, parseMarkdown } from "../src/kit/Markdown";
import { threadsOf } from "../src/screens/proposals/threads";

describe("the subset of Markdown", () => {
  it("knows emphasis, code, links and lists", () => {
    expect(parseInline("a **b *c*** `d*e*` [f](https://g.example/h) *i*")).toEqual([
      "a ",
      { kind: "strong", parts: ["b ", { kind: "em", parts: ["c"] }] },
      " ",
      { kind: "code", text: "d*e*" },
      " ",
      { kind: "link", text: "f", address: "https://g.example/h" },
      " ",
      { kind: "em", parts: ["i"] },
    ]);
    expect(parseMarkdown("one\ntwo\n\n- a\n- b\n1. c\n```\n*x*\n```\nend").map((block) => block.kind)).toEqual(["text", "list", "list", "code", "text"]);
  });

  it("leaves everything else as text", () => {
    for (const text of ["<img src=x onerror=1>", "[x](javascript:alert(1))", "[x](data:text/html,1)", "snake_case_name", "2 * 3 * 4", "**", "`", "[](x)", "# no heading"]) {
      expect(parseInline(text)).toEqual([text]);
    }
  });

  it("ends for long and hostile texts", () => {
    // Longer than the time limit of a test if a pattern is quadratic.
    for (const text of ["*".repeat(50_000), "[".repeat(50_000), "`a".repeat(20_000), "**a*b".repeat(10_000), "- \n".repeat(20_000), "```\n".repeat(20_001)]) {
      expect(parseMarkdown(text).length).toBeGreaterThan(0);
    }
  });
});

const comment = (id: string, created_at: number, reply_to: string | null = null): CommentOutput => ({ id, created_at, reply_to, actor_id: null, edited_at: null, text: "", on: null, resolved: false });

describe("threads", () => {
  it("collects replies below their first comment, in order", () => {
    const found = threadsOf([comment("c", 3, "b"), comment("a", 1), comment("b", 2, "a"), comment("d", 4)]);
    expect(found.map((thread) => [thread.head.id, thread.replies.map((each) => each.id)])).toEqual([
      ["a", ["b", "c"]],
      ["d", []],
    ]);
  });

  it("shows a reply whose first comment is hidden", () => {
    expect(threadsOf([comment("b", 2, "hidden")]).map((thread) => thread.head.id)).toEqual(["b"]);
  });

  it("ends for replies in a circle", () => {
    expect(threadsOf([comment("a", 1, "b"), comment("b", 2, "a")])).toHaveLength(2);
  });
});

describe("server-sent events", () => {
  it("reads events that come in pieces", async () => {
    const parts = [": started\n\nid: 7\nevent: proposal.ope", "ned\ndata: {\"a\":\ndata: 1}\n\n", "data: x\n\nda"];
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    });
    const found = [];
    for await (const event of readEvents(new Response(body))) found.push(event);
    expect(found).toEqual([
      { id: "7", kind: "proposal.opened", data: '{"a":\n1}' },
      { id: null, kind: "message", data: "x" },
    ]);
    expect(parseEvent(": nothing")).toBeNull();
  });
});
