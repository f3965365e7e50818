/**
 * How large a body may be, and which numbers it may hold. One that says its length is refused before it is read; one that comes in chunks is read up to the
 * limit. The framework's own gate is not used: it cannot take apart a request of the adapter.
 */
import type { MiddlewareHandler } from 'hono';
import { refuseInexact } from '../../../job/json-text.ts';
import { Problem } from '../problem.ts';

export function bodyGate(max: number): MiddlewareHandler {
  return async (c, next) => {
    if (c.req.header('Transfer-Encoding') === undefined) {
      if (Number(c.req.header('Content-Length') ?? 0) > max) throw tooLarge(max);
      return next();
    }
    const body = await readUpTo(c.req.raw.body, max);
    const headers = Object.fromEntries(Object.entries(c.req.header()).filter(([name]) => name !== 'transfer-encoding'));
    c.req.raw = new Request(c.req.url, { method: c.req.method, headers, body: isBodiless(c.req.method) ? null : body });
    return next();
  };
}

/** Numbers that the parser would round. The framework keeps the text, and parses it again for the verb. */
export const numberGate: MiddlewareHandler = async (c, next) => {
  refuseInexact(await c.req.text(), 'body');
  await next();
};

const isBodiless = (method: string): boolean => method === 'GET' || method === 'HEAD';

async function readUpTo(body: ReadableStream<Uint8Array> | null, max: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > max) throw tooLarge(max);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const tooLarge = (max: number) => new Problem('too-large', { detail: `allowed: ${max} bytes (http.bodyBytesMax)` });
