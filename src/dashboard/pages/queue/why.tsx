/** All that has to hold before a job starts, with what does not hold first in its words, and what to do about it. */
import type { Schemas } from '../../api-types.ts';
import type { LiveQueue } from '../../live.ts';
import { Advice } from '../../parts/advice.tsx';
import { Icon } from '../../parts/icon.tsx';
import { bytesText, numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { sentence, withoutName } from './say.tsx';
import type { Why } from './seen.ts';

const { why: said } = words.queue;
type Check = keyof typeof said.checks;
type Code = Why['reasons'][number]['code'];

/** The reason → the check that it fails. */
const FAILS: Readonly<Partial<Record<Code, Check>>> = {
  paused: 'paused',
  'no-leader': 'leader',
  lingering: 'leader',
  'no-worker': 'worker',
  'ready-capped': 'worker',
  busy: 'worker',
  waiting: 'limits',
  'redis-full': 'redis',
};
const CHECKS: readonly Check[] = ['paused', 'leader', 'worker', 'limits', 'redis'];

interface Seen {
  readonly found: LiveQueue;
  readonly redis: Schemas['LiveNow']['redis'];
  readonly why: Why;
}

export function WhyList({ found, redis, why }: Seen) {
  const reasonsOf = (check: Check) => why.reasons.filter(({ code }) => FAILS[code] === check);
  const rows = CHECKS.map((check) => ({ check, reasons: reasonsOf(check) })).toSorted(
    (one, other) => Number(other.reasons.length > 0) - Number(one.reasons.length > 0),
  );
  return (
    <section aria-label={said.title}>
      <header class="sec">
        <h2>{said.title}</h2>
        <p>{said.text}</p>
      </header>
      <ol class="why-list">
        {rows.map(({ check, reasons }) => (
          <li key={check} class={reasons.length > 0 ? 'warn' : undefined}>
            <Icon name={reasons.length > 0 ? (check === 'paused' ? 'pause' : 's-failed') : 's-done'} />
            <b>{said.checks[check]}</b>
            {reasons.length > 0 ? (
              <span>
                {reasons.map(({ text, advice }) => (
                  <p key={text}>
                    {sentence(withoutName(found.queue, text))} – <Advice text={advice} />
                  </p>
                ))}
              </span>
            ) : (
              <span>{holdsText(check, found, redis)}</span>
            )}
          </li>
        ))}
      </ol>
      {why.lastStart ? <p class="quiet">{said.lastStart(why.lastStart.text)}</p> : null}
    </section>
  );
}

/** What is seen of a check that holds. */
function holdsText(check: Check, found: LiveQueue, redis: Seen['redis']): string {
  const { leaders, workers, slots, limits } = found;
  switch (check) {
    case 'paused':
      return said.notPaused;
    case 'leader': {
      const names = [...new Set(leaders.flatMap((one) => one ?? []))].join(', ');
      return said.leaders(leaders.filter((one) => one !== null).length, leaders.length, names);
    }
    case 'worker':
      return said.workers(workers, slots === undefined ? undefined : numberText(slots));
    case 'limits':
      return limits?.text ?? said.noLimit;
    case 'redis': {
      if (redis === undefined) return '';
      const used = bytesText(redis.usedBytes);
      return redis.maxBytes === 0 ? said.used(used) : said.of(used, bytesText(redis.maxBytes));
    }
  }
}
