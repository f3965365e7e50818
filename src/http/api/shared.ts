/**
 * One reading for all who ask the same within some time: what costs Redis much is read once, however many look. A change that
 * this daemon makes makes readings old at once; one of another process is seen when the time has passed.
 */
import { type Clock, systemClock } from '../../kernel/clock.ts';

export interface Shared<Value> {
  /** @throws whatever the reading fails with; then the next one who asks reads again */
  readonly get: (key: string, read: () => Promise<Value>) => Promise<Value>;
  /** Whoever asks from now on reads again. */
  readonly forget: () => void;
}

interface Reading<Value> {
  readonly untilMs: number;
  readonly value: Promise<Value>;
}

/** So many are kept: each may be some hundred kilobytes. */
const READINGS_MAX = 20;

export function createShared<Value>(keepMs: number, clock: Clock = systemClock): Shared<Value> {
  const readings = new Map<string, Reading<Value>>();
  return {
    get(key, read) {
      const nowMs = clock.monotonicMs();
      for (const [name, { untilMs }] of readings) if (untilMs <= nowMs) readings.delete(name);
      const known = readings.get(key);
      if (known) return known.value;
      const [oldest] = readings.keys();
      if (oldest !== undefined && readings.size >= READINGS_MAX) readings.delete(oldest);
      const reading = { untilMs: nowMs + keepMs, value: read() };
      readings.set(key, reading);
      reading.value.catch(() => readings.get(key) === reading && readings.delete(key));
      return reading.value;
    },
    forget: () => readings.clear(),
  };
}
