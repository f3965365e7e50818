/**
 * The way of a program to a daemon, for `duestream conformance`: it hands calls on over HTTP, writes them down, and plays the faults
 * of a trial. A call is carried out or not, and its answer arrives, late, never, or as another one:
 *
 *  program ──▶ asked ──▶ daemon ──▶ answered ──▶ program
 *               │ cut, or another answer   │ lose, hold, or another answer
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createAbort } from '../kernel/abort.ts';
import { type Answered, type Call, fieldsOf, type Happenings } from './record.ts';

/** The faults of one trial. Undefined: the call, or its answer, goes on as it is. */
export interface Faults {
  /** Before the daemon hears of it. `cut`: it never does. */
  readonly asked?: (call: Call) => Answered | 'cut' | undefined;
  /** When the daemon has answered. `lose`: the program never reads it. */
  readonly answered?: (call: Call, answered: Answered) => Promise<Answered | 'lose' | undefined> | 'lose' | undefined;
}

interface Trial {
  readonly queue: string;
  readonly happened: Happenings;
  readonly faults: Faults;
}

const VERB = /^\/v1\/queues\/([^/]+)\/([a-z]+)$/;
/** What a program sends is at most so long. */
const BODY_BYTES_MAX = 4 << 20;

export class FaultyLine {
  readonly #server: Server;
  readonly #daemon: number;
  readonly #target: () => string | undefined;
  /** By queue. */
  readonly #trials = new Map<string, Trial>();

  /** @param target where the daemon is; undefined: it was killed */
  constructor(daemon: number, target: () => string | undefined) {
    this.#daemon = daemon;
    this.#target = target;
    this.#server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
      this.#carry(request, response).catch(() => response.destroy());
    });
  }

  /** Returns the URL for the program. */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const bound = this.#server.address();
    if (typeof bound !== 'object' || bound === null) throw new Error('the line listens nowhere');
    return `http://127.0.0.1:${bound.port}`;
  }

  /** From now on it plays this trial, beside others. */
  play(trial: Trial): void {
    this.#trials.set(trial.queue, trial);
  }

  /** Calls of this queue, by programs of the trial before, are cut. */
  end(queue: string): void {
    this.#trials.delete(queue);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #carry(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(request);
    const [, queue = '', verb = ''] = VERB.exec(request.url ?? '') ?? [];
    const trial = this.#trials.get(queue);
    if (!trial) return void response.destroy();
    const { happened, faults } = trial;
    const call = happened.asked({ daemon: this.#daemon, verb, body: fieldsOf(parsed(text)) });
    const lose = () => {
      call.isLost = true;
      response.destroy();
    };
    const own = faults.asked?.(call);
    if (own === 'cut') return lose();
    // A claim whose caller has gone is no claim any more.
    const gone = createAbort();
    response.once('close', () => gone.abort());
    const answered = own ?? (await this.#ask(request, { text, signal: gone.signal }));
    if (answered === undefined) return lose();
    const played = own === undefined ? await faults.answered?.(call, answered) : undefined;
    if (played === 'lose' || response.destroyed) return lose();
    happened.answered(call, played ?? answered);
    send(response, played ?? answered);
  }

  /** Undefined: the daemon is gone. */
  async #ask(
    { url, headers }: IncomingMessage,
    { text, signal }: { readonly text: string; readonly signal: AbortSignal },
  ): Promise<Answered | undefined> {
    const target = this.#target();
    if (target === undefined) return undefined;
    try {
      const response = await fetch(target + url, {
        method: 'POST',
        body: text,
        signal,
        headers: { 'content-type': headers['content-type'] ?? 'application/json' },
      });
      const retryAfter = Number(response.headers.get('retry-after') ?? 0);
      return { status: response.status, body: fieldsOf(parsed(await response.text())), retryAfter };
    } catch {
      return undefined;
    }
  }
}

function send(response: ServerResponse, { status, body, retryAfter }: Answered): void {
  const after = retryAfter > 0 ? { 'retry-after': String(retryAfter) } : {};
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type, ...after });
  response.end(JSON.stringify(body));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.length;
    if (bytes > BODY_BYTES_MAX) throw new Error('the body is too long');
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
