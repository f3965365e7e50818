/** What the pages of a queue share: tabs that lead from one to the other, with how much there is. */
import type { ComponentChildren } from 'preact';
import { useLive } from '../../live.ts';
import { numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { addressOf } from './addresses.ts';
import '../../css/queue.css';

const { tabs } = words.queue;

/** The word of an address → the name of its tab. */
const PARTS = [
  ['queue', tabs.overview],
  ['jobs', tabs.jobs],
  ['groups', tabs.groups],
  ['dead', tabs.dead],
  ['late', tabs.late],
  ['closed', tabs.closed],
  ['sets', tabs.sets],
] as const;
type Part = (typeof PARTS)[number][0];

interface Shell {
  readonly queue: string;
  readonly here: Part;
  readonly children: ComponentChildren;
}

export function OfQueue({ queue, here, children }: Shell) {
  const { now } = useLive();
  const found = now?.queues.find((one) => one.queue === queue);
  const counts: Partial<Record<Part, number>> =
    found === undefined
      ? {}
      : { jobs: found.scheduled + found.waiting + found.ready + found.running, dead: found.dead };
  return (
    <div class="of-queue">
      <nav class="sub" aria-label={tabs.label}>
        {PARTS.map(([part, text]) => (
          <a key={part} href={addressOf(part, queue)} aria-current={part === here ? 'page' : undefined}>
            {text}
            {counts[part] === undefined ? null : <span class="quiet"> {numberText(counts[part])}</span>}
          </a>
        ))}
      </nav>
      {children}
    </div>
  );
}
