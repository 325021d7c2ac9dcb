/** What is shown while a response is awaited, or when there is an error. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { toNode } from "./address";
import { ApiError, type RequestOptions, hasToken, keepToken, send } from "./api";
import type { Id, SearchResponse } from "./responses";

const OFFERED = 8;

export interface Awaited<T> {
  value?: T;
  problem?: ApiError;
  busy: boolean;
  note: string;
  again: () => void;
}

/** Send a request when `keys` change. Until its response is there, the last one stays. */
export function useResponse<T>(request: (options: RequestOptions) => Promise<T>, keys: unknown[]): Awaited<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ value?: T; problem?: ApiError; busy: boolean; note: string }>({ busy: true, note: "" });
  useEffect(() => {
    const end = new AbortController();
    const set = (next: typeof state) => end.signal.aborted || setState(next);
    setState(({ value }) => ({ value, busy: true, note: "" }));
    request({ signal: end.signal, waiting: (note) => end.signal.aborted || setState(({ value }) => ({ value, busy: true, note })) })
      .then((value) => set({ value, busy: false, note: "" }))
      .catch((error) => set({ problem: asProblem(error), busy: false, note: "" }));
    return () => end.abort();
  }, [...keys, turn]);
  return { ...state, again: () => setTurn(turn + 1) };
}

function asProblem(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("page", `the page failed: ${error instanceof Error ? error.message : error}`);
}

interface LoadedProps<T> {
  of: Awaited<T>;
  what: string;
  asked?: Id[];
  children: (value: T) => ComponentChildren;
}

/** A response, the wait for it, or an error. */
export function Loaded<T>({ of, what, asked = [], children }: LoadedProps<T>) {
  if (of.problem?.code === "unauthorised") return <TokenForm again={of.again} />;
  if (of.problem?.code === "unknown_id") return <UnknownId asked={asked} />;
  if (of.problem) return <Failure problem={of.problem} again={of.again} />;
  return (
    <div class={of.busy && of.value !== undefined ? "stale" : undefined} aria-busy={of.busy}>
      {of.busy && <p class="wait" role="status">{of.note || `Loading ${what} …`}</p>}
      {of.value !== undefined && children(of.value)}
    </div>
  );
}

function Failure({ problem, again }: { problem: ApiError; again: () => void }) {
  const title = { unreachable: "The server cannot be reached", busy: "The server is busy" }[problem.code] ?? "Error";
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
  const [refused] = useState(hasToken); // when it was asked for, not once another one is tried
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
      <strong>This server requires a token</strong>
      <p role={refused ? "alert" : undefined}>
        {refused
          ? "The token was refused. Enter the token that the server was started with."
          : "Enter the token that it was started with. It is kept in this tab only, until the tab is closed."}
      </p>
      <label>
        Token <input ref={input} type="password" autocomplete="off" required />
      </label>{" "}
      <button type="submit">Continue</button>
    </form>
  );
}

/** Suggest ids that begin like one that no node has. */
function UnknownId({ asked }: { asked: Id[] }) {
  const near = useResponse((options) => alike(asked.map(String), options), asked);
  return (
    <Loaded of={near} what="similar ids">
      {({ missing, ids }) => (
        <div class="problem" role="alert">
          <strong>No node has the id “{missing}”</strong>
          {ids.length > 0 && <p>Did you mean one of these?</p>}
          <ul class="ids">{ids.map((id) => <li key={id}><a href={toNode(id)}>{id}</a></li>)}</ul>
        </div>
      )}
    </Loaded>
  );
}

/** Find which of some ids is unknown, and ids that are similar to it. */
async function alike(asked: string[], options: RequestOptions): Promise<{ missing: string; ids: Id[] }> {
  for (const missing of asked) {
    const { ids } = await search(missing, OFFERED, options);
    if (String(ids[0]) !== missing) return { missing, ids: ids.length ? ids : await beginAlike(missing, options) };
  }
  return { missing: asked.join(", "), ids: [] }; // all are known by now: another model has come
}

async function beginAlike(text: string, options: RequestOptions): Promise<Id[]> {
  const length = text.length;
  const lengths = [length - 1, length - 2, Math.floor(length / 2), Math.floor(length / 4), 0].filter((size) => size >= 0);
  for (const size of lengths) {
    const { ids } = await search(text.slice(0, size), OFFERED, options);
    if (ids.length) return ids;
  }
  return [];
}

export function search(text: string, limit: number, options: RequestOptions): Promise<SearchResponse> {
  return send<SearchResponse>(`v1/nodes?${new URLSearchParams({ query: text, limit: String(limit) })}`, null, options);
}
