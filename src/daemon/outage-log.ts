/**
 * Keeps the log short when things go wrong. Every loop of a process tells on its own that Redis is away, and a loop per
 * partition makes hundreds; here they become one line when it begins, one every half minute, and one when it is over,
 * for each thing that Redis says. What else could come in a flood then (leaders lost and elected, jobs taken over)
 * passes through a bucket: what does not fit is counted, and the next line says how many were left out.
 */

import type { Events } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';

export type Lines = Pick<Log, 'info' | 'warn'>;

export interface OutageLog {
  readonly away: (event: Events['redis.away']) => void;
  readonly back: (event: Events['redis.back']) => void;
  /** Ends the reminders. */
  readonly stop: () => void;
}

interface Episode {
  readonly sinceMs: number;
  readonly services: Set<string>;
  readonly callOff: () => void;
}

/** Lines at once, and then one per so many ms. */
export const LINES_MAX = 50;
export const LINE_EVERY_MS = 2000;
const REMIND_EVERY_MS = 30_000;
/** Different answers at a time; more become one. */
const EPISODES_MAX = 10;

/** At most so many lines: a bucket that fills slowly. `unsaid` of the next line says how many did not fit. */
export function fewer(log: Lines, clock: Pick<Clock, 'monotonicMs'>): Lines {
  let tokens = LINES_MAX;
  let atMs = clock.monotonicMs();
  let unsaid = 0;

  function say(level: 'info' | 'warn', fields: Readonly<Record<string, unknown>>, message: string): void {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(LINES_MAX, tokens + (nowMs - atMs) / LINE_EVERY_MS);
    atMs = nowMs;
    if (tokens < 1) {
      unsaid += 1;
      return;
    }
    tokens -= 1;
    log[level](unsaid > 0 ? { ...fields, unsaid } : fields, message);
    unsaid = 0;
  }

  return {
    info: (fields, message) => say('info', fields, message),
    warn: (fields, message) => say('warn', fields, message),
  };
}

export function createOutageLog({ log, clock }: { readonly log: Lines; readonly clock: Clock }): OutageLog {
  /** By what Redis says; '' is silence. */
  const episodes = new Map<string, Episode>();
  const newsOf = new Map<string, string>();

  function begin({ who, why, answered }: Events['redis.away']): Episode {
    const sinceMs = clock.monotonicMs();
    const services = new Set<string>();
    let callOff: () => void = () => undefined;
    const remind = () => {
      callOff = clock.timer(REMIND_EVERY_MS, () => {
        const forMs = Math.round(clock.monotonicMs() - sinceMs);
        const fields = { who: [...services][0], why, services: services.size, forMs };
        log.warn(fields, answered ? 'Redis still refuses' : 'Redis is still away');
        remind();
      });
    };
    remind();
    log.warn({ who, why }, answered ? 'Redis refuses' : 'Redis is away');
    return { sinceMs, services, callOff: () => callOff() };
  }

  /** Whether that was the last service of its episode. */
  function leave(who: string): Episode | undefined {
    const news = newsOf.get(who);
    newsOf.delete(who);
    const episode = news === undefined ? undefined : episodes.get(news);
    episode?.services.delete(who);
    if (news === undefined || episode === undefined || episode.services.size > 0) return undefined;
    episode.callOff();
    episodes.delete(news);
    return episode;
  }

  return {
    away(event) {
      const { who, why, answered } = event;
      const word = answered ? (/^\S{1,40}( \S{1,100})?/.exec(why)?.[0] ?? 'ERR') : '';
      const news = episodes.has(word) || episodes.size < EPISODES_MAX ? word : 'others';
      if (newsOf.get(who) === news) return;
      // The new one begins before the old one ends: in between, Redis was not back.
      const episode = episodes.get(news) ?? begin(event);
      episodes.set(news, episode);
      leave(who);
      episode.services.add(who);
      newsOf.set(who, news);
    },
    back({ who, stopped }) {
      const over = leave(who);
      if (!over || stopped) return;
      const awayMs = Math.round(clock.monotonicMs() - over.sinceMs);
      log.info({ awayMs }, episodes.size > 0 ? 'Redis is back for some services' : 'Redis is back');
    },
    stop() {
      for (const { callOff } of episodes.values()) callOff();
      episodes.clear();
    },
  };
}
