/**
 * Registrar's partner API and webhooks.
 *
 * Calls and types are generated from the OpenAPI document. This file adds the key, retries, pages,
 * refusals as errors, and the check of a webhook's signature. It has no dependencies, and runs wherever
 * there are fetch and Web Crypto: Node 20 and later, Deno, Bun and edge workers.
 */
import { createClient, createConfig, type Client } from "./generated/client/index.js";
import type { Error as Refusal, Webhooks } from "./generated/index.js";

export * from "./generated/index.js";

/** What arrives at a webhook URL; `type` tells the events apart. */
export type WebhookEvent = Webhooks["body"];

export interface Settings {
  /** Where Registrar is, such as https://registrar.example; it may end in /api/v1/. */
  baseUrl: string;
  key: string;
  /** How often a request is sent at most; 5 where nothing is said, 1 never repeats one. */
  attempts?: number;
  fetch?: typeof fetch;
}

/** Makes the client that is given to every call, as in `provisionStudent({ client, body })`. */
export function registrar({ baseUrl, key, attempts = 5, fetch = globalThis.fetch }: Settings): Client {
  const client = createClient(
    createConfig({
      baseUrl: baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, ""),
      auth: key,
      fetch: repeating(fetch, attempts),
      throwOnError: true,
    }),
  );
  client.interceptors.error.use((error, response) => (response ? new Fault(response, error as Partial<Refusal>) : error));
  return client;
}

/** An answer of 400 and above: the error that every call throws. */
export class Fault extends Error {
  readonly status: number;
  /** Stable, such as read_only_key; "" when it was not Registrar that answered. */
  readonly code: string;
  /** Of the request, where one is at fault. */
  readonly field?: string;
  /** To quote when asking about the request. */
  readonly requestId: string;

  constructor(response: Response, body: Partial<Refusal> | undefined) {
    super(body?.error ?? response.statusText);
    this.name = "Fault";
    this.status = response.status;
    this.code = body?.code ?? "";
    this.field = body?.field;
    this.requestId = response.headers.get("X-Request-Id") ?? "";
  }
}

/**
 * Sends a request again after a broken connection, 429 and 5xx. A change gets an Idempotency-Key, so that it is
 * carried out once however often it is sent.
 */
function repeating(send: typeof fetch, attempts: number): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    if (request.method !== "GET" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= attempts;
      let pause = Math.random() * Math.min(30, 2 ** attempt / 4);
      try {
        const response = await send(last ? request : request.clone());
        // 409 to a repeated change may say that the first one is still worked on.
        const again = response.status === 429 || response.status >= 500 || (response.status === 409 && attempt > 1);
        if (last || !again) return response;
        pause = Number(response.headers.get("Retry-After")) || pause;
        await response.body?.cancel();
      } catch (error) {
        if (last || request.signal.aborted) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, pause * 1000));
    }
  };
}

/** What every page has. */
interface Page {
  has_more: boolean;
  next_cursor: string;
}

/**
 * Reads a list page by page: `for await (const page of pages(listResults, { client }))`. Store a page's next_cursor
 * together with its rows, and begin with it the next time: nothing is lost and nothing comes twice.
 */
export async function* pages<List extends (options: any) => PromiseLike<{ data?: unknown }>>(
  list: List,
  options: Parameters<List>[0],
): AsyncGenerator<Extract<Awaited<ReturnType<List>>["data"], Page>> {
  for (let cursor: string | undefined = options.query?.cursor; ; ) {
    const { data } = await list({ ...options, query: { ...options.query, cursor } });
    const page = data as Extract<Awaited<ReturnType<List>>["data"], Page>;
    yield page;
    if (!page.has_more) return;
    cursor = page.next_cursor;
  }
}

/** A request that does not come from Registrar, or is older than five minutes. Answer it with 401. */
export class SignatureError extends Error {
  override name = "SignatureError";
}

/**
 * Checks the signature of a webhook request and returns its event. body is the request's raw body, as it arrived, and
 * secret the URL's whole signing secret.
 */
export async function verify(body: string | Uint8Array, signature: string | null | undefined, secret: string): Promise<WebhookEvent> {
  const parts = (signature ?? "").split(",").map((part) => part.trim().split("=", 2));
  const t = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d{1,12}$/.test(t) || Math.abs(Date.now() / 1000 - Number(t)) > 300) throw new SignatureError("the signature is missing or stale");
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array([...new TextEncoder().encode(`${t}.`), ...bytes]);
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  let fits = false;
  for (const [name, v1] of parts) { // two v1 while a secret replaces another
    if (name !== "v1") continue;
    const digest = Uint8Array.from((v1 ?? "").match(/../g) ?? [], (hex: string) => parseInt(hex, 16));
    // Which compares in constant time.
    fits = (await crypto.subtle.verify("HMAC", key, digest, signed)) || fits;
  }
  if (!fits) throw new SignatureError("the signature is wrong");
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
}
