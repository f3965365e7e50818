/** The log in a long outage: when it begins, now and then, and when it is over; never a line per failure. */
import { beforeEach, describe, expect, test } from 'vitest';
import { createLog } from '../../src/daemon/log.ts';
import { createOutageLog, fewer, LINE_EVERY_MS, LINES_MAX, logEvents } from '../../src/job/event-log.ts';
import { createEmitter } from '../../src/job/events.ts';
import type { Clock } from '../../src/kernel/clock.ts';

let nowMs = 0;
let said: string[] = [];
let timers: { readonly atMs: number; readonly ring: () => void }[] = [];

const clock: Clock = {
  wallMs: () => nowMs,
  monotonicMs: () => nowMs,
  sleep: () => Promise.resolve(true),
  timer(ms, ring) {
    const timer = { atMs: nowMs + ms, ring };
    timers.push(timer);
    return () => {
      timers = timers.filter((one) => one !== timer);
    };
  },
};
const log = {
  info: (fields: object, message: string) => void said.push(`${message} ${JSON.stringify(fields)}`),
  warn: (fields: object, message: string) => void said.push(`${message} ${JSON.stringify(fields)}`),
};

/** Lets time pass, with its timers. */
function pass(ms: number): void {
  const endMs = nowMs + ms;
  for (;;) {
    const [next] = timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
    if (!next) break;
    timers = timers.filter((one) => one !== next);
    nowMs = next.atMs;
    next.ring();
  }
  nowMs = endMs;
}
const told = () => said.splice(0);
const many = Array.from({ length: 200 }, (_, at) => `mover of q:${at}`);
const silence = { why: 'connect ECONNREFUSED', answered: false };

beforeEach(() => {
  nowMs = 0;
  said = [];
  timers = [];
});

describe('an outage', () => {
  test('of an hour in which 200 loops fail is told in 121 lines', () => {
    const outage = createOutageLog({ log, clock });
    for (const who of many) outage.away({ who, ...silence });
    expect(told()).toEqual(['Redis is away {"who":"mover of q:0","why":"connect ECONNREFUSED"}']);
    pass(30_000);
    const still =
      'Redis is still away {"who":"mover of q:0","why":"connect ECONNREFUSED","services":200,"forMs":30000}';
    expect(told()).toEqual([still]);
    pass(3_570_000);
    expect(told().length).toBe(119);
    for (const who of many) outage.back({ who, awayMs: 1 });
    expect(told()).toEqual(['Redis is back {"awayMs":3600000}']);
    pass(3_600_000);
    expect(told()).toEqual([]);
  });

  test('that turns into a refusal is told as one, and is over once', () => {
    const outage = createOutageLog({ log, clock });
    const loading = { why: 'LOADING Redis is loading', answered: true };
    for (const who of many) outage.away({ who, ...silence });
    for (const who of many) outage.away({ who, ...loading });
    for (const who of many) outage.back({ who, awayMs: 1 });
    expect(told()).toEqual([
      'Redis is away {"who":"mover of q:0","why":"connect ECONNREFUSED"}',
      'Redis refuses {"who":"mover of q:0","why":"LOADING Redis is loading"}',
      'Redis is back {"awayMs":0}',
    ]);
  });

  test('is told although one queue is refused for long already', () => {
    const outage = createOutageLog({ log, clock });
    outage.away({ who: 'mover of a:0', why: 'WRONGTYPE key', answered: true });
    pass(1000);
    outage.away({ who: 'mover of b:0', ...silence });
    outage.back({ who: 'mover of b:0', awayMs: 1 });
    outage.back({ who: 'mover of a:0', awayMs: 1 });
    expect(told().map((line) => line.split(' {')[0])).toEqual([
      ...['Redis refuses', 'Redis is away', 'Redis is back for some services', 'Redis is back'],
    ]);
  });

  test('is not said to be over by services that stop, and reminds of nobody who is gone', () => {
    const outage = createOutageLog({ log, clock });
    outage.away({ who: 'mover of a:0', ...silence });
    told();
    outage.back({ who: 'mover of a:0', awayMs: 1, stopped: true });
    pass(120_000);
    expect(told()).toEqual([]);
    outage.away({ who: 'mover of a:0', ...silence });
    told();
    outage.stop();
    pass(120_000);
    expect(told()).toEqual([]);
  });

  test('with a hundred different answers is told in a few lines', () => {
    const outage = createOutageLog({ log, clock });
    for (const [at, who] of many.entries()) outage.away({ who, why: `ODD${at} text`, answered: true });
    expect(told().length).toBe(11);
  });
});

describe('a flood of lines', () => {
  test('is cut to one in two seconds after the first fifty, and says how many were left out', () => {
    const few = fewer(log, clock);
    for (let at = 0; at < 10_000; at += 1) few.info({}, 'leader lost');
    expect(told().length).toBe(LINES_MAX);
    nowMs += LINE_EVERY_MS;
    few.warn({ queue: 'a' }, 'leader elected');
    few.warn({}, 'leader elected');
    expect(told()).toEqual(['leader elected {"queue":"a","unsaid":9950}']);
  });

  test('of changes of leaders drowns neither that Redis is back nor what was missed', () => {
    const lines: string[] = [];
    const log = createLog({ level: 'info', role: 'mover', to: { write: (line) => void lines.push(line) } });
    const events = createEmitter();
    const stop = logEvents(events, log, clock);
    events.emit('redis.away', { who: 'mover of q:0', ...silence });
    for (let partition = 0; partition < 200; partition += 1) {
      events.emit('leader.lost', { queue: 'q', partition, epoch: 1, why: 'away' });
    }
    events.emit('redis.back', { who: 'mover of q:0', awayMs: 1 });
    events.emit('partition.repaired', { queue: 'q', partition: 0, what: 'orphan', count: 1 });
    stop();
    expect(lines.filter((line) => line.includes('leader lost')).length).toBe(LINES_MAX);
    for (const words of ['Redis is away', 'Redis is back', 'somebody else removed'])
      expect(lines.join('')).toContain(words);
  });
});
