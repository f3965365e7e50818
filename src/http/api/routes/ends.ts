import type { JobEnd } from '../../../client/client.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { LIVE_STATES } from '../../../job/state.ts';
import { createAbort } from '../../../kernel/abort.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { answers } from '../answer.ts';
import type { Answers } from '../answers.ts';
import type { Backend } from '../backend.ts';
import { seenReason } from '../caller.ts';
import { Problem } from '../problem.ts';
import { ofQueue, strict, textOf } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { filterFields, filterOf, statesIn, statesText } from './job-shapes.ts';

/** Proxies close a request that is silent for longer. */
const WAIT_MS_MAX = 60_000;
const STREAM_MS_MAX = 300_000;
const DURATION = /^\d{1,9}(\.\d{1,3})?(ms|s|m)?$/;

export const waitText = textOf(DURATION, 'at most 60s, such as 30s or 500ms', '30s')
  .refine((text) => waitedMs(text) === msOf(text), { error: 'at most 60s, such as 30s or 500ms' })
  .optional();

const msOf = (text: string): number => durationMs(/^\d+$/.test(text) ? Number(text) : text, 'wait');

/** How long a request asks to be kept waiting; 0 for what is no such text. */
export function waitedMs(text: string | undefined): number {
  return text !== undefined && DURATION.test(text) ? Math.min(msOf(text), WAIT_MS_MAX) : 0;
}

interface Waiting {
  readonly queue: string;
  readonly id: string;
  readonly isBare: boolean;
  readonly wait: string;
  readonly signal: AbortSignal;
}

/** Resolves when the job is over, when the time is up, or when the caller has gone. @throws Problem `stopped`, `bad-input` */
export async function untilOver(backend: Backend, { queue, id, isBare, wait, signal }: Waiting): Promise<void> {
  if (isBare) throw new Problem('bad-input', { detail: 'wait and bare are both given; allowed: one of them' });
  // To look at a queue declares none.
  await refsOfQueue(await backend.place(), queue);
  try {
    await backend.client.wait(backend.queueOf(queue), id, { timeout: msOf(wait), signal });
  } catch (error) {
    if (!signal.aborted || error instanceof Problem) throw error;
  }
}

const streamEnds = verb({
  name: 'jobs.ends',
  method: 'get',
  at: '/queues/{queue}/ends',
  summary: 'Hear of the ends of jobs',
  doc: 'Server-sent events (`EventSource`): an `end` for each job that the filter means now, at most 10,000, as it ends; then `bye`, whose `code` is `all` when every job is over, `timeout` when the time is up (the jobs that are not over come before as such ends), or that of a problem.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({
    state: statesText.default(LIVE_STATES.join(',')),
    ...filterFields,
    wait: textOf(DURATION, 'at most 5m', '30s')
      .refine((text) => msOf(text) <= STREAM_MS_MAX, { error: 'at most 5m' })
      .default('30s'),
  }),
  answers: { 200: { type: answers.JobEnd, media: 'text/event-stream', doc: 'Events; what `end` says.' } },
  problems: ['stopped', 'too-many'],
  async run({ path: { queue }, query: { state, wait, ...fields }, caller, backend, signal }) {
    await refsOfQueue(await backend.place(), queue);
    const filter = { ...filterOf(fields), state: statesIn(state, LIVE_STATES) };
    const seen = (end: JobEnd) => ({
      ...end,
      reason: 'reason' in end ? seenReason(end.reason, caller.scopes) : undefined,
    });
    const begin = (gone: AbortSignal) =>
      backend.client.ends(backend.queueOf(queue), filter, { timeout: msOf(wait), signal: gone });
    return { status: 200, stream: () => streamOf({ backend, begin, seen, signal: signal() }) };
  },
});

export const endVerbs: readonly AnyVerb[] = [streamEnds];

/** Each may wait for 10,000 jobs, and asks Redis for them every 5 s. */
const STREAMS_MAX = 100;
const open = new WeakMap<Backend, number>();

/** Counts one stream more, until the function that it returns is called. @throws Problem `too-many` */
function takePlace(backend: Backend): () => void {
  const there = open.get(backend) ?? 0;
  if (there >= STREAMS_MAX) {
    throw new Problem('too-many', {
      detail: `allowed: ${STREAMS_MAX} streams of ends at once; close one, or wait for single jobs`,
      headers: { 'Retry-After': '10' },
    });
  }
  open.set(backend, there + 1);
  return () => void open.set(backend, (open.get(backend) ?? 1) - 1);
}

/** It begins at the first `next`, and is over when the jobs are, the caller has gone, or it failed. */
async function* untilLeft(ends: () => AsyncGenerator<JobEnd, void>, leave: () => void): AsyncGenerator<JobEnd, void> {
  try {
    yield* ends();
  } finally {
    leave();
  }
}

/** How long a stream is not begun: a problem is told by its status where it shows within this time. */
const FIRST_MS = 200;
/** A stream that says nothing for longer may be closed on its way. */
const BEAT_MS = 15_000;

/** A stream that nobody reads for longer is left: its reader may be gone without a word, or may never have had the answer. */
const UNREAD_MS = 60_000;

interface Beginning {
  readonly backend: Backend;
  readonly begin: (gone: AbortSignal) => AsyncGenerator<JobEnd, void>;
  readonly seen: (end: JobEnd) => Answers['JobEnd'];
  /** Aborts when the caller has gone, or the daemon stops. */
  readonly signal: AbortSignal;
}

/** @throws Problem that the first look finds, while there still can be one */
async function streamOf({ backend, begin, seen, signal }: Beginning): Promise<ReadableStream<Uint8Array>> {
  const gone = createAbort();
  const ends = untilLeft(() => begin(AbortSignal.any([signal, gone.signal])), takePlace(backend));
  const first = ends.next();
  if (await comes(first, FIRST_MS)) await first;
  const leave = () => {
    gone.abort();
    // Where it stands at an end that nobody takes, it hears of no signal.
    ends.return().catch(() => undefined);
  };
  return eventsOf({ ends, first, seen, leave, signal });
}

interface Streaming {
  readonly ends: AsyncGenerator<JobEnd, void, undefined>;
  readonly first: Promise<IteratorResult<JobEnd, void>>;
  readonly seen: (end: JobEnd) => Answers['JobEnd'];
  readonly leave: () => void;
  readonly signal: AbortSignal;
}

/** An end is taken when the one before was read, so nothing piles up here. */
export function eventsOf({ ends, first, seen, leave, signal }: Streaming): ReadableStream<Uint8Array> {
  let coming = first;
  let isLate = false;
  let isBegun = false;
  let callOff: () => void = () => undefined;
  const leaveAll = () => {
    callOff();
    leave();
  };
  /** Takes what is next; true when it was the last. */
  const say = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<boolean> => {
    // Something comes at once, so that the browser and every proxy know that the answer has begun.
    const [waitMs, comment] = isBegun ? [BEAT_MS, ': beat\n\n'] : [0, ': begun\n\n'];
    isBegun = true;
    if (!(await comes(coming, waitMs))) {
      controller.enqueue(bytesOf(comment));
      return false;
    }
    try {
      const { done, value } = await coming;
      if (!done) {
        isLate ||= value.status === 'timeout';
        coming = ends.next();
        // A viewer that has gone asks for no more.
        coming.catch(() => undefined);
        controller.enqueue(eventOf('end', answers.JobEnd.listed(seen(value))));
        return false;
      }
      controller.enqueue(eventOf('bye', { code: isLate ? 'timeout' : 'all' }));
    } catch (error) {
      controller.enqueue(eventOf('bye', { code: codeOf(error) }));
    }
    controller.close();
    return true;
  };
  const awaitReader = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    callOff = systemClock.timer(UNREAD_MS, () => {
      controller.error(new Error('the viewer does not read'));
      leave();
    });
  };
  return new ReadableStream(
    {
      start(controller) {
        awaitReader(controller);
        // Of an answer that nobody took there is nobody to cancel it.
        signal.addEventListener('abort', () => isBegun || leaveAll(), { once: true });
      },
      async pull(controller) {
        callOff();
        if (!(await say(controller))) awaitReader(controller);
      },
      cancel: leaveAll,
    },
    { highWaterMark: 0 },
  );
}

/** Whether it settles within this time. */
function comes(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const callOff = systemClock.timer(ms, () => resolve(false));
    const settled = () => {
      callOff();
      resolve(true);
    };
    promise.then(settled, settled);
  });
}

const codeOf = (error: unknown): string =>
  error instanceof Problem || error instanceof DuestreamError ? error.code : 'failed';

const encoder = new TextEncoder();
const bytesOf = (text: string): Uint8Array => encoder.encode(text);
const eventOf = (name: string, data: unknown): Uint8Array =>
  bytesOf(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
