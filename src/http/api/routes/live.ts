import type { LiveQueue, Look, Rates } from '../../../inspect/look.ts';
import { answers } from '../answer.ts';
import type { Answers } from '../answers.ts';
import { type Caller, mayUse } from '../caller.ts';
import { BEAT_MS, type Beat, type Farewell, type Pulse } from '../pulse.ts';
import { strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const EVENTS_MAX = 1_000_000;

const live = verb({
  name: 'live',
  method: 'get',
  at: '/live',
  summary: 'Watch all queues, once a second',
  doc: 'Server-sent events (`EventSource`). `now` has what is described here; its ids are numbers with the name of the daemon in front, so a gap says that something was missed. `away`: Redis does not answer. `bye`: the stream ends, because the daemon stops, the token was revoked, `events` were sent, or it has lasted five minutes (`renew`: ask again). A viewer that does not read is cut off.',
  scope: 'read',
  queues: 'own',
  query: strict({
    events: wholeText(1, EVENTS_MAX, EVENTS_MAX).openapi({ description: 'Ends after so many events.', example: '1' }),
  }),
  answers: { 200: { type: answers.LiveNow, media: 'text/event-stream', doc: 'Events; what `now` says.' } },
  problems: ['too-many', 'stopped'],
  async run({ query: { events }, caller, pulse, stillMay, cut }) {
    pulse.check();
    return { status: 200, stream: () => streamOf({ pulse, caller, stillMay, cut, eventsMax: events }) };
  },
});

export const liveVerbs: readonly AnyVerb[] = [live];

// One viewer: beats of the pulse as server-sent events. What is not read is not kept: a viewer that lags behind is cut
// off, and one whose token was revoked is sent away. Nothing begins before somebody reads.
//
// The kernel takes megabytes for a viewer that never reads before anybody here can see it. So each stream ends after
// five minutes: a viewer that reads comes again, and the connection of one that does not is cut a beat later.

interface Watching {
  readonly pulse: Pulse;
  readonly caller: Caller;
  /** Whether whoever asked could ask it again now. */
  readonly stillMay: () => Promise<boolean>;
  /** Closes the connection at once. */
  readonly cut: () => void;
  /** Ends after so many events. */
  readonly eventsMax: number;
}

/** Events that a viewer has not read yet. */
const UNREAD_MAX = 3;
/** So many beats a token is taken for good. */
const RECHECK_BEATS = 5;
/** So many beats a stream lasts. */
export const STREAM_BEATS_MAX = 300;
const RETRY_MS = 3000;

export function streamOf(watching: Watching): ReadableStream<Uint8Array> {
  let leave: (() => void) | undefined;
  let isOver = false;
  const source = {
    pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      if (leave || isOver) return;
      const say = (bytes: Uint8Array) => controller.enqueue(bytes);
      const end = (why: Farewell) => {
        if (isOver) return;
        isOver = true;
        leave?.();
        if (why === 'slow') {
          // What waits for it is dropped, also where nobody here can cut the connection.
          controller.error(new Error('the viewer does not read'));
          watching.cut();
          return;
        }
        say(eventOf('bye', { code: why }));
        controller.close();
        if (why === 'renew') leave = cutLater(watching);
      };
      say(bytesOf(`retry: ${RETRY_MS}\n\n`));
      const isSlow = () => (controller.desiredSize ?? 0) <= -UNREAD_MAX;
      leave = watching.pulse.join(viewerOf(watching, { say, end, isSlow }), () => end('stopping'));
    },
    cancel() {
      isOver = true;
      leave?.();
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}

/** Two beats later, of which the first may come at once, a viewer that reads has read all and its connection is closed. */
function cutLater({ pulse, cut }: Watching): () => void {
  let beats = 0;
  const leave = pulse.join(() => {
    beats += 1;
    if (beats < 2) return;
    leave();
    cut();
  }, cut);
  return leave;
}

interface Line {
  readonly say: (bytes: Uint8Array) => void;
  readonly end: (why: Farewell) => void;
  readonly isSlow: () => boolean;
}

function viewerOf({ caller, stillMay, eventsMax }: Watching, { say, end, isSlow }: Line): (beat: Beat) => void {
  let beats = 0;
  let events = 0;
  let wasAway = false;
  return (beat) => {
    beats += 1;
    if (isSlow()) return end('slow');
    if (beat.kind === 'now') say(lookEvent(beat, caller));
    else say(wasAway ? bytesOf(': beat\n\n') : eventOf('away', { code: beat.code, sinceMs: beat.sinceMs }));
    events += beat.kind === 'now' || !wasAway ? 1 : 0;
    wasAway = beat.kind === 'away';
    if (events >= eventsMax) return end('enough');
    if (beats >= STREAM_BEATS_MAX) return end('renew');
    if (beats % RECHECK_BEATS !== 0) return;
    void stillMay().then((may) => {
      if (!may) end('revoked');
    });
  };
}

const encoder = new TextEncoder();
const bytesOf = (text: string): Uint8Array => encoder.encode(text);
const eventOf = (name: string, data: unknown): Uint8Array =>
  bytesOf(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);

/** The same bytes for all who may see all: a hundred viewers that do not read hold one copy of each look. */
const written = new WeakMap<Look, Uint8Array>();

function lookEvent({ id, look }: Extract<Beat, { kind: 'now' }>, caller: Caller): Uint8Array {
  const known = caller.queues === undefined ? written.get(look) : undefined;
  const bytes = known ?? bytesOf(`id: ${id}\nevent: now\ndata: ${JSON.stringify(seenLook(look, caller))}\n\n`);
  if (caller.queues === undefined) written.set(look, bytes);
  return bytes;
}

/** Redis, the forecast and what `doctor` finds are about all queues. */
export function seenLook(
  { nowMs, queues, unread, processes, redis, forecast, doctor }: Look,
  caller: Caller,
): Answers['LiveNow'] {
  const mine = queues.filter(({ queue }) => mayUse(caller, queue));
  const leaders = mine.flatMap((one) => one.leaders);
  const led = leaders.filter((one) => one !== undefined);
  const whole = caller.queues === undefined ? { redis, forecast, doctor } : {};
  return {
    nowMs,
    everyMs: BEAT_MS,
    queues: mine.map((one) => ({ ...one, leaders: one.leaders.map((name) => name ?? null) })),
    unread: unread.filter(({ queue }) => mayUse(caller, queue)),
    total: totalOf(mine),
    processes: { ...processes, leaders: new Set(led).size, partitions: leaders.length, led: led.length },
    ...whole,
  };
}

function totalOf(queues: readonly LiveQueue[]): Answers['LiveNow']['total'] {
  const sum = (of: (one: LiveQueue) => number) => queues.reduce((total, one) => total + of(one), 0);
  const rate = (name: keyof Rates) => Math.round(sum(({ perSecond }) => perSecond[name]) * 10) / 10;
  return {
    scheduled: sum((one) => one.scheduled),
    waiting: sum((one) => one.waiting),
    ready: sum((one) => one.ready),
    running: sum((one) => one.running),
    dead: sum((one) => one.dead),
    oldestDueAgeMs: Math.max(0, ...queues.map((one) => one.oldestDueAgeMs)),
    perSecond: {
      scheduled: rate('scheduled'),
      promoted: rate('promoted'),
      started: rate('started'),
      ended: rate('ended'),
    },
  };
}
