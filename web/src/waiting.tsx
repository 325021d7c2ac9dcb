/** What is shown until there is an answer, or where there is none. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { toNode } from "./address";
import { type Asking, Problem, ask, hasToken, keepToken } from "./api";
import type { Found, Id } from "./answers";

const OFFERED = 8;

export interface Awaited<T> {
  value?: T;
  problem?: Problem;
  busy: boolean;
  note: string;
  again: () => void;
}

/** Asks when `keys` change. Meanwhile the answer before stays. */
export function useAnswer<T>(question: (asking: Asking) => Promise<T>, keys: unknown[]): Awaited<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ value?: T; problem?: Problem; busy: boolean; note: string }>({ busy: true, note: "" });
  useEffect(() => {
    const end = new AbortController();
    const set = (next: typeof state) => end.signal.aborted || setState(next);
    setState(({ value }) => ({ value, busy: true, note: "" }));
    question({ signal: end.signal, waiting: (note) => end.signal.aborted || setState(({ value }) => ({ value, busy: true, note })) })
      .then((value) => set({ value, busy: false, note: "" }))
      .catch((error) => set({ problem: asProblem(error), busy: false, note: "" }));
    return () => end.abort();
  }, [...keys, turn]);
  return { ...state, again: () => setTurn(turn + 1) };
}

function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem("page", `the page failed: ${error instanceof Error ? error.message : error}`);
}

interface AnswerProps<T> {
  of: Awaited<T>;
  what: string;
  asked?: Id[];
  children: (value: T) => ComponentChildren;
}

/** What is asked for, the wait for it, or what went wrong. */
export function Answer<T>({ of, what, asked = [], children }: AnswerProps<T>) {
  if (of.problem?.code === "unauthorised") return <TokenForm again={of.again} />;
  if (of.problem?.code === "unknown_id") return <UnknownId asked={asked} />;
  if (of.problem) return <Failure problem={of.problem} again={of.again} />;
  return (
    <div class={of.busy && of.value !== undefined ? "stale" : undefined} aria-busy={of.busy}>
      {of.busy && <p class="wait" role="status">{of.note || `Asking for ${what} …`}</p>}
      {of.value !== undefined && children(of.value)}
    </div>
  );
}

function Failure({ problem, again }: { problem: Problem; again: () => void }) {
  const title = { gone: "The server is gone", busy: "The server is busy" }[problem.code] ?? "No answer";
  return (
    <div class="problem" role="alert">
      <strong>{title}</strong>
      <p>{sentence(problem.message)}</p>
      <button type="button" onClick={again}>Try again</button>
    </div>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function TokenForm({ again }: { again: () => void }) {
  const refused = hasToken();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  function submit(event: Event) {
    event.preventDefault();
    const token = input.current!.value.trim();
    if (!token) return;
    keepToken(token);
    again();
  }
  return (
    <form class="problem" onSubmit={submit}>
      <strong>This server wants a token</strong>
      <p role={refused ? "alert" : undefined}>
        {refused
          ? "The token was refused. Enter the one that the server was started with."
          : "Enter the one that it was started with. It stays in this tab, and is forgotten when the tab is closed."}
      </p>
      <label>
        Token <input ref={input} type="password" autocomplete="off" required />
      </label>{" "}
      <button type="submit">Go on</button>
    </form>
  );
}

/** Ids that begin alike are offered instead. */
function UnknownId({ asked }: { asked: Id[] }) {
  const near = useAnswer((asking) => alike(asked.map(String), asking), asked);
  return (
    <Answer of={near} what="ids that begin alike">
      {({ missing, ids }) => (
        <div class="problem" role="alert">
          <strong>No node has the id “{missing}”</strong>
          {ids.length > 0 && <p>Perhaps one of these?</p>}
          <ul class="ids">{ids.map((id) => <li key={id}><a href={toNode(id)}>{id}</a></li>)}</ul>
        </div>
      )}
    </Answer>
  );
}

/** Which of some ids is not known, and ids that are like it. */
async function alike(asked: string[], asking: Asking): Promise<{ missing: string; ids: Id[] }> {
  for (const missing of asked) {
    const { ids } = await search(missing, OFFERED, asking);
    if (String(ids[0]) !== missing) return { missing, ids: ids.length ? ids : await beginAlike(missing, asking) };
  }
  return { missing: asked.join(", "), ids: [] }; // all are known by now: another model has come
}

async function beginAlike(text: string, asking: Asking): Promise<Id[]> {
  const length = text.length;
  const lengths = [length - 1, length - 2, Math.floor(length / 2), Math.floor(length / 4), 0].filter((size) => size >= 0);
  for (const size of lengths) {
    const { ids } = await search(text.slice(0, size), OFFERED, asking);
    if (ids.length) return ids;
  }
  return [];
}

export function search(text: string, limit: number, asking: Asking): Promise<Found> {
  return ask<Found>(`v1/nodes?${new URLSearchParams({ query: text, limit: String(limit) })}`, null, asking);
}
