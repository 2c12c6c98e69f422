/** The state of the feed on the screen: it follows the stream, continues a broken one, and stops when paused. */
import { useEffect, useRef, useState } from "preact/hooks";

import type { ChangeBlockOutput } from "../../api/feedTypes";
import { problemOf, type Problem } from "../../api/problem";
import type { FeedRequest } from "../../source/feed";
import { source } from "../../state/context";
import { addBlocks } from "./cards";

const PAUSE_MS = 1000;

export interface Feed {
  readonly blocks: readonly ChangeBlockOutput[];
  readonly state: "connecting" | "live" | "paused" | "stopped";
  readonly problem: Problem | null;
  readonly isPaused: boolean;
  pause(paused: boolean): void;
}

/** Follows a feed. Another request starts anew; a pause continues at its cursor, so that no commit is missed. */
export function useFeed(request: FeedRequest): Feed {
  const key = JSON.stringify(request);
  const [blocks, setBlocks] = useState<readonly ChangeBlockOutput[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const cursor = useRef<string | null>(null);
  useEffect(() => {
    cursor.current = null;
    setBlocks([]);
  }, [key]);
  useEffect(() => {
    if (isPaused) return undefined;
    const abort = new AbortController();
    setProblem(null);
    const listener = {
      onOpen: () => setOpen(true),
      onCursor: (next: string) => (cursor.current = next),
      onBlocks: (added: readonly ChangeBlockOutput[]) => setBlocks((known) => addBlocks(known, added)),
    };
    void (async () => {
      while (!abort.signal.aborted) {
        try {
          await source.feed.follow(request, cursor.current, listener, abort.signal);
        } catch (error) {
          const found = problemOf(error);
          if (abort.signal.aborted || found === null) return;
          // A lost connection is tried again; an answer of the server is shown.
          if (found.status !== 0) {
            setOpen(false);
            setProblem(found);
            return;
          }
        }
        setOpen(false);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    })();
    return () => {
      abort.abort();
      setOpen(false);
    };
  }, [key, isPaused]);
  const state = problem !== null ? "stopped" : isPaused ? "paused" : isOpen ? "live" : "connecting";
  return { blocks, state, problem, isPaused, pause: setPaused };
}
