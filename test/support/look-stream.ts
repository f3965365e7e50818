/** The live view as a program reads it: each look of the daemon, in the order in which all viewers get them. */

/** What a queue holds at one moment of Redis. */
export interface Held {
  readonly nowMs: number;
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
}

export interface LookStream {
  /** All so far, oldest first. */
  readonly seen: readonly Held[];
  /** The next one that comes. @throws when the stream has ended */
  readonly next: () => Promise<Held>;
  readonly stop: () => Promise<void>;
}

interface Look {
  readonly nowMs: number;
  readonly queues: readonly (Omit<Held, 'nowMs'> & { readonly queue: string })[];
}

/** @param queue the one that is looked at: with others beside it, a look would be of several moments */
export async function openLooks(origin: string, queue: string): Promise<LookStream> {
  const gone = new AbortController();
  const response = await fetch(`${origin}/v1/live`, { signal: gone.signal });
  if (!response.ok || response.body === null) throw new Error(`no live view: ${response.status}`);
  const seen: Held[] = [];
  const waiting: { readonly tell: (held: Held) => void; readonly fail: (error: Error) => void }[] = [];
  const read = eventsIn(response.body, (look) => {
    const [one] = look.queues.filter((each) => each.queue === queue);
    if (!one || look.queues.length !== 1) return;
    const { scheduled, ready, running, dead } = one;
    const held = { nowMs: look.nowMs, scheduled, ready, running, dead };
    seen.push(held);
    for (const { tell } of waiting.splice(0)) tell(held);
  }).catch(() => undefined);
  const ended = read.then(() => {
    for (const { fail } of waiting.splice(0)) fail(new Error('the live view has ended'));
  });
  return {
    seen,
    next: () => new Promise<Held>((tell, fail) => waiting.push({ tell, fail })),
    async stop() {
      gone.abort();
      await ended;
    },
  };
}

async function eventsIn(body: ReadableStream<Uint8Array>, tell: (look: Look) => void): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined && /^event: now$/m.test(event)) tell(JSON.parse(data));
    }
  }
}
