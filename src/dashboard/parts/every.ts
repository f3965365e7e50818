/** Something that is asked for again and again, while the page shows it and nobody has paused. */
import { useEffect } from 'preact/hooks';
import { useLive } from '../live.ts';

export function useEvery(everyMs: number, act: () => void): void {
  const isPaused = useLive().state === 'paused';
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(act, everyMs);
    return () => clearInterval(timer);
  }, [isPaused, everyMs, act]);
}
