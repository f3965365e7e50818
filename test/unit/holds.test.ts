/**
 * What a worker holds until it is due, with a clock of Redis that is set back and forward meanwhile; and bugs planted in it, of which
 * the scenes must notice each.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import type { EntryId, Token } from '../../src/job/job.ts';
import { createAbort } from '../../src/kernel/abort.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { createServerClock } from '../../src/redis/connection/server-clock.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { Holds } from '../../src/worker/run/holds.ts';
import { InFlight } from '../../src/worker/run/in-flight.ts';
import { dropped, edited } from '../chaos/marks.mjs';
import { read, root } from '../support/repository.ts';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });

/** One worker whose time and whose Redis the test moves. */
function desk(Kept: typeof Holds) {
  let nowMs = 1000;
  /** By the clock of Redis, which is so far ahead of that of the worker. */
  let offsetMs = 1_000_000;
  const timers: { atMs: number; act: () => void }[] = [];
  const clock: Clock = {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async () => true,
    timer(ms, act) {
      const one = { atMs: nowMs + ms, act };
      timers.push(one);
      return () => void timers.splice(timers.indexOf(one) >>> 0, 1);
    },
  };
  const server = createServerClock({ time: async () => [] }, clock);
  const inFlight = new InFlight(2);
  const [begun, back]: [string[], string[]] = [[], []];
  const holds = new Kept({
    inFlight,
    clock,
    jobs: {
      async defer(_, { member }) {
        back.push(member.slice(2));
        return { kind: 'ok', dueMs: 0 } as never;
      },
    },
    windowMs: 0,
    jobLeaseMs: 60_000,
    serverOf: () => server,
    signal: createAbort().signal,
    events: createEmitter(),
    onHeld: () => undefined,
  });
  const serverMs = () => nowMs + offsetMs;
  /** The reply of a call that was on its way for 2 ms. */
  const replied = () => server.saw({ sentMs: nowMs - 1, receivedMs: nowMs + 1, serverMs: serverMs() });
  const started = (id: string, dueMs: number) => {
    const delivery = { entry: `1-${id}` as EntryId, member: `j:${id}`, dueMs, token: '1' as Token };
    return inFlight.addStarted(ref, delivery, { startedMs: nowMs, leasedMs: nowMs });
  };
  return {
    begun,
    back,
    serverMs,
    replied,
    /** Redis has started a job that is due in so many ms. */
    start(id: string, inMs: number) {
      replied();
      const dueMs = serverMs() + inMs;
      const entry = started(id, dueMs);
      if (inMs > 0) holds.hold(entry, inMs, () => void begun.push(id));
      else if (holds.hasSlot(entry)) begun.push(id);
      return dueMs;
    },
    /** The same by a reply that was on its way for so long. */
    startLate(id: string, inMs: number, wayMs: number) {
      holds.hold(started(id, serverMs() + inMs), inMs + wayMs, () => void begun.push(id));
    },
    step(byMs: number) {
      offsetMs += byMs;
    },
    /** Somebody asks for it. */
    letGo(id: string) {
      const entry = inFlight.find(ref, `1-${id}`);
      if (entry) holds.letGo(entry);
    },
    pass(ms: number) {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = timers.toSorted((a, b) => a.atMs - b.atMs)[0];
        if (!next || next.atMs > untilMs) break;
        timers.splice(timers.indexOf(next), 1);
        nowMs = Math.max(nowMs, next.atMs);
        next.act();
      }
      nowMs = untilMs;
    },
  };
}

type Scene = (at: ReturnType<typeof desk>) => void;
const scenes: Readonly<Record<string, Scene>> = {
  'each job begins in the millisecond in which it is due': ({ start, pass, begun }) => {
    start('b', 20);
    start('a', 10);
    pass(9);
    expect(begun).toEqual([]);
    pass(1);
    expect(begun).toEqual(['a']);
    pass(10);
    expect(begun).toEqual(['a', 'b']);
  },
  'a job that was let go does not begin, and is given back once': ({ start, pass, begun, back, letGo }) => {
    start('a', 20);
    start('b', 20);
    letGo('a');
    letGo('a');
    pass(20);
    expect([begun, back]).toEqual([['b'], ['a']]);
  },
  'a job waits for the rest where a reply tells that the clock of Redis was set back': (at) => {
    const dueMs = at.start('a', 20);
    at.pass(10);
    at.step(-500);
    at.replied();
    at.pass(500);
    expect(at.begun).toEqual([]);
    at.pass(20);
    expect(at.begun).toEqual(['a']);
    expect(at.serverMs()).toBeGreaterThanOrEqual(dueMs);
  },
  'it begins no earlier where that clock was set forward': ({ start, pass, begun, step, replied }) => {
    start('a', 20);
    step(500);
    replied();
    pass(19);
    expect(begun).toEqual([]);
    pass(1);
    expect(begun).toEqual(['a']);
  },
  'it is given back where that clock was set back for long': ({ start, pass, begun, back, step, replied }) => {
    start('a', 20);
    step(-60_000);
    replied();
    pass(20);
    expect([begun, back]).toEqual([[], ['a']]);
  },
  'those of one due time begin in the order in which they were delivered, however long a reply was on its way': (
    at,
  ) => {
    const dueMs = at.serverMs() + 20;
    at.startLate('a', 20, 5);
    at.start('b', 20);
    at.pass(19);
    expect(at.begun).toEqual([]);
    at.pass(1);
    expect([at.begun, at.serverMs() >= dueMs]).toEqual([['a', 'b'], true]);
  },
  'a job that takes the place of one that is due later begins on time': ({ start, pass, begun, back }) => {
    start('c', 50);
    start('b', 40);
    start('a', 10);
    expect(back).toEqual(['c']);
    pass(10);
    expect(begun).toEqual(['a']);
  },
  'a job that is due gets the slot of the one that is due last': ({ start, begun, back }) => {
    start('b', 10);
    start('c', 40);
    start('a', 0);
    expect([begun, back]).toEqual([['a'], ['c']]);
  },
};

test.each(Object.entries(scenes))('%s', (_, scene) => scene(desk(Holds)));

/** `test/sim` has a build that begins early, and one that cancels what is held. */
const PLANTED = [
  {
    title: 'begins what somebody took back',
    file: 'src/worker/run/holds.ts',
    mark: 'lets-go',
    edit: () => 'if (!this.#held.has(entry)) return false;',
  },
  { title: 'holds for ever', file: 'src/worker/run/holds.ts', mark: 'begins', edit: dropped },
  {
    title: 'holds a slot that a due job needs',
    file: 'src/worker/run/holds.ts',
    mark: 'gives-its-slot',
    edit: () => 'if (this.#isStopped) return true;',
  },
  {
    title: 'knows nothing of a clock that was set back',
    file: 'src/worker/run/holds.ts',
    mark: 'set-back',
    edit: () => 'if (this.#isStopped) {',
  },
];

const folder = mkdtempSync(join(tmpdir(), 'due-holds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(PLANTED.map((one) => [one.title, one] as const))(
  'a build that %s is noticed',
  async (_, { file, mark, edit }) => {
    const whole = read(file).replaceAll(/from '(\.[^']+)'/g, (_, path: string) => {
      return `from '${resolve(root, dirname(file), path)}'`;
    });
    const copy = join(folder, `${mark}.ts`);
    writeFileSync(copy, edited(whole, mark, edit));
    const broken: { readonly Holds: typeof Holds } = await import(copy);
    const failed = Object.values(scenes).filter((scene) => {
      try {
        scene(desk(broken.Holds));
        return false;
      } catch {
        return true;
      }
    });
    expect(failed.length).toBeGreaterThan(0);
  },
);
