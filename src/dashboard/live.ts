/**
 * What happens now: the daemon looks once a second for all who watch, and sends it. A viewer who pauses asks for nothing.
 */
import { useEffect, useState } from 'preact/hooks';
import { askText, problemText, urlOf } from './api.ts';
import type { Schemas } from './api-types.ts';
import * as calls from './calls.ts';
import { createWatching, polledOf, type StreamListener, type Watched } from './watching.ts';

/** A look takes longer than this where nothing answers. */
const POLL_WITHIN_MS = 15_000;

export type Now = Schemas['LiveNow'];
export type LiveQueue = Now['queues'][number];
type Live = Watched<Now>;

type Work = Pick<LiveQueue, 'workers' | 'scheduled' | 'waiting' | 'ready' | 'running'>;

/** There is work, and nobody to do it. A queue without jobs needs no worker. */
export const isUnserved = ({ workers, scheduled, waiting, ready, running }: Work): boolean =>
  workers === 0 && scheduled + waiting + ready + running > 0;

let live: Live = { now: undefined, state: 'connecting', hasGap: false, why: '' };
const watchers = new Set<(live: Live) => void>();
const watching = createWatching<Now>({
  openStream,
  tell,
  wordsFor: problemText,
  poll: async () => polledOf<Now>(await askText(calls.live, { events: 1 }, POLL_WITHIN_MS)),
  after(ms, act) {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
});

/** Opens the stream with the first part of a page that looks, and closes it with the last. */
export function useLive(): Live {
  const [value, setValue] = useState(live);
  useEffect(() => {
    watchers.add(setValue);
    if (watchers.size === 1 && live.state !== 'paused') watching.open();
    setValue(live);
    return () => {
      watchers.delete(setValue);
      if (watchers.size === 0) watching.close();
    };
  }, []);
  return value;
}

export function pauseLive(): void {
  watching.close();
  tell({ state: 'paused', why: '' });
}

export function resumeLive(): void {
  watching.forget();
  tell({ state: 'connecting', why: '' });
  watching.open();
}

function tell(change: Partial<Live>): void {
  live = { ...live, ...change };
  for (const watcher of watchers) watcher(live);
}

function openStream({ now, away, bye, broken, refused }: StreamListener<Now>): () => void {
  const source = new EventSource(urlOf(calls.live, {}), { withCredentials: true });
  source.addEventListener('now', ({ data, lastEventId }) => now(lastEventId, JSON.parse(data)));
  source.addEventListener('away', away);
  source.addEventListener('bye', ({ data }) => bye(JSON.parse(data).code));
  source.addEventListener('error', () => (source.readyState === EventSource.CLOSED ? refused() : broken()));
  return () => source.close();
}

// Something that is asked for again and again, while the page shows it and nobody has paused.

export function useEvery(everyMs: number, act: () => void): void {
  const isPaused = useLive().state === 'paused';
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(act, everyMs);
    return () => clearInterval(timer);
  }, [isPaused, everyMs, act]);
}
