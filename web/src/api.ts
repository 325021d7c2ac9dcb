/** Questions to the server that this page came from. */

export class Problem extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const TOKEN = "gatas-token";
const ATTEMPTS = 6;
const LONGEST_WAIT = 10;

export function keepToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN) !== null;
}

export interface Asking {
  signal: AbortSignal;
  /** Told what is waited for, while the server is busy or still loading. */
  waiting: (text: string) => void;
}

/** The answer to a question. A server that is busy or still loading is asked again, when it says. */
export async function ask<T>(path: string, question: object | null, { signal, waiting }: Asking): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const response = await send(path, question, signal);
    const answer = await read(response);
    if (response.ok) {
      noticeModel(answer.model);
      return answer as T;
    }
    const loading = answer.code === "not_ready";
    if (response.status !== 429 && !loading) throw new Problem(answer.code, answer.message);
    if (attempt >= ATTEMPTS && !loading) throw new Problem("busy", "the server is busy and did not answer. Try again in a while.");
    const seconds = Math.min(Number(response.headers.get("retry-after")) || 1, LONGEST_WAIT);
    waiting(`${loading ? "The model is being loaded" : "The server is busy"}; asking again in ${seconds} s …`);
    await pause(seconds, signal);
  }
}

async function send(path: string, question: object | null, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = question === null ? {} : { "content-type": "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token !== null) headers.authorization = `Bearer ${token}`;
  const method = question === null ? "GET" : "POST";
  try {
    return await fetch(path, { method, headers, signal, body: question === null ? null : JSON.stringify(question) });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Problem("gone", "the server does not answer. It may have ended, or the network is down.");
  }
}

async function read(response: Response): Promise<Record<string, any>> {
  try {
    return JSON.parse(await response.text(), exact);
  } catch {
    return { code: "unreadable", message: `the server's answer (status ${response.status}) could not be read.` };
  }
}

/** Integers that JavaScript cannot hold stay as they are written; the server takes ids as text too. */
function exact(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const lost = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return lost && context?.source && /^-?\d+$/.test(context.source) ? context.source : value;
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
  });
}

let model: string | undefined;
let changed = () => {};

/** Called when another model answers than before. */
export function onOtherModel(call: () => void): void {
  changed = call;
}

function noticeModel(fingerprint: string): void {
  const other = model !== undefined && model !== fingerprint;
  model = fingerprint;
  if (other) changed();
}
