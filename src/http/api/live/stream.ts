/**
 * One viewer: beats of the pulse as server-sent events. What is not read is not kept: a viewer that lags behind is cut off, and one whose
 * token was revoked is sent away. Nothing begins before somebody reads.
 */
import { type Caller, mayUse } from '../caller.ts';
import type { LiveQueue, Look, Rates } from './look.ts';
import { BEAT_MS, type Beat, type Farewell, type Pulse } from './pulse.ts';

export interface Watching {
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
const RETRY_MS = 3000;

export function streamOf(watching: Watching): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let leave: (() => void) | undefined;
  let isOver = false;
  const source = {
    pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      if (leave || isOver) return;
      const say = (text: string) => controller.enqueue(encoder.encode(text));
      const end = (why: Farewell) => {
        if (isOver) return;
        isOver = true;
        leave?.();
        if (why !== 'slow') say(eventOf('bye', { code: why }));
        controller.close();
        if (why === 'slow') watching.cut();
      };
      say(`retry: ${RETRY_MS}\n\n`);
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

interface Line {
  readonly say: (text: string) => void;
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
    if (beat.kind === 'now') say(`id: ${beat.id}\n${textOf(beat.look, caller)}`);
    else say(wasAway ? ': beat\n\n' : eventOf('away', { code: beat.code, sinceMs: beat.sinceMs }));
    events += beat.kind === 'now' || !wasAway ? 1 : 0;
    wasAway = beat.kind === 'away';
    if (events >= eventsMax) return end('enough');
    if (beats % RECHECK_BEATS !== 0) return;
    void stillMay().then((may) => {
      if (!may) end('revoked');
    });
  };
}

const eventOf = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Written once for all who may see all. */
const written = new WeakMap<Look, string>();

function textOf(look: Look, caller: Caller): string {
  const known = caller.queues === undefined ? written.get(look) : undefined;
  const text = known ?? eventOf('now', seenLook(look, caller));
  if (caller.queues === undefined) written.set(look, text);
  return text;
}

/** Redis, the forecast and what `doctor` finds are about all queues. */
export function seenLook({ nowMs, queues, processes, redis, forecast, doctor }: Look, caller: Caller): object {
  const mine = queues.filter(({ queue }) => mayUse(caller, queue));
  const leaders = mine.flatMap((one) => one.leaders);
  const led = leaders.filter((one) => one !== undefined);
  const whole = caller.queues === undefined ? { redis, forecast, doctor } : {};
  return {
    ...{ nowMs, everyMs: BEAT_MS },
    queues: mine.map((one) => ({ ...one, leaders: one.leaders.map((name) => name ?? null) })),
    total: totalOf(mine),
    processes: { ...processes, leaders: new Set(led).size, partitions: leaders.length, led: led.length },
    ...whole,
  };
}

function totalOf(queues: readonly LiveQueue[]): object {
  const sum = (of: (one: LiveQueue) => number) => queues.reduce((total, one) => total + of(one), 0);
  const rate = (name: keyof Rates) => Math.round(sum(({ perSecond }) => perSecond[name]) * 10) / 10;
  return {
    ...{ scheduled: sum((one) => one.scheduled), ready: sum((one) => one.ready) },
    ...{ running: sum((one) => one.running), dead: sum((one) => one.dead) },
    oldestDueAgeMs: Math.max(0, ...queues.map((one) => one.oldestDueAgeMs)),
    perSecond: {
      ...{ scheduled: rate('scheduled'), promoted: rate('promoted') },
      ...{ started: rate('started'), ended: rate('ended') },
    },
  };
}
