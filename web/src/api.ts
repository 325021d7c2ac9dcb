/** Requests to the server that this page came from. */

export class ApiError extends Error {
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

export interface RequestOptions {
  signal: AbortSignal;
  /** Called with what to show while the server is busy or still loading. */
  waiting: (text: string) => void;
}

/** Send a request and return its response. Where the server is busy or still loading, retry when it says. */
export async function send<T>(path: string, body: object | null, { signal, waiting }: RequestOptions): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetchOnce(path, body, signal);
    const content = await read(response);
    if (response.ok) {
      noticeModel(content.model);
      return content as T;
    }
    const loading = content.code === "not_ready";
    if (response.status !== 429 && !loading) throw new ApiError(content.code, content.message);
    if (attempt >= ATTEMPTS && !loading) throw new ApiError("busy", "the server did not answer after several attempts. Try again later.");
    const seconds = Math.min(Number(response.headers.get("retry-after")) || 1, LONGEST_WAIT);
    waiting(`${loading ? "The model is loading" : "The server is busy"}; retrying in ${seconds} s …`);
    await pause(seconds, signal);
  }
}

async function fetchOnce(path: string, body: object | null, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = body === null ? {} : { "content-type": "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token !== null) headers.authorization = `Bearer ${token}`;
  const method = body === null ? "GET" : "POST";
  try {
    return await fetch(path, { method, headers, signal, body: body === null ? null : JSON.stringify(body) });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("unreachable", "the server cannot be reached. It may have stopped, or the network may be down.");
  }
}

async function read(response: Response): Promise<Record<string, any>> {
  try {
    return JSON.parse(await response.text(), exact);
  } catch {
    return { code: "unreadable", message: `the server's response (status ${response.status}) could not be read.` };
  }
}

/** Integers that JavaScript cannot hold stay as they are written; the server takes ids as text too. */
function exact(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const lost = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return lost && context?.source && /^-?\d+$/.test(context.source) ? context.source : value;
}

export function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)));
  });
}

let model: string | undefined;
let changed = () => {};

/** Set what is called when another model answers than before. */
export function onOtherModel(call: () => void): void {
  changed = call;
}

function noticeModel(fingerprint: string): void {
  const other = model !== undefined && model !== fingerprint;
  model = fingerprint;
  if (other) changed();
}
