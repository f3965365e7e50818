/** Limits that the queue shares with others: how much all of them use, and who they are. */
import { useCallback } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type LiveQueue, useEvery } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { Gauge, type Reading } from './gauge.tsx';
import type { Why } from './seen.ts';

const { limits: said, flow } = words.queue;
const EVERY_MS = 5000;

interface Sharing {
  readonly found: LiveQueue;
  readonly why: Why | undefined;
}

/** Whoever may not see other queues is not answered, and sees none of these. */
export function SharedGauges({ names, ...seen }: Sharing & { readonly names: readonly string[] }) {
  const asked = useAsked(calls.limitsList, {});
  useEvery(EVERY_MS, useCallback(asked.reload, [asked.reload]));
  const all = asked.value?.limits.filter(({ name }) => names.includes(name)) ?? [];
  return (
    <>
      {all.map((limit) => (
        <Gauge key={limit.name} {...(limit.perSecond === undefined ? placesOf : turnsOf)(limit, seen)} />
      ))}
    </>
  );
}

/** Of a concurrency: what is lent to partitions of all queues. */
function placesOf(limit: Schemas['LimitView'], { found: { queue } }: Sharing): Reading {
  const { concurrency: most = 0, lent, partitions } = limit;
  const own = partitions.reduce((sum, one) => sum + (one.queue === queue ? one.share : 0), 0);
  return {
    name: said.sharedLimit(limit.name),
    used: numberText(lent),
    of: said.of(numberText(most)),
    share: most === 0 ? 0 : lent / most,
    isFull: lent >= most,
    note: `${said.ownPlaces(numberText(own))} ${othersText(limit, queue)}`,
  };
}

/** Of a rate: what this queue starts of it. Full is one that holds jobs of this queue. */
function turnsOf(limit: Schemas['LimitView'], { found: { queue, perSecond }, why }: Sharing): Reading {
  const isHeld = why?.reasons.some(({ heldBy }) => heldBy === 'shared') ?? false;
  return {
    name: said.sharedLimit(limit.name),
    used: `${numberText(perSecond.started)}${flow.perSecond}`,
    of: said.rateOf(limit.text),
    share: isHeld ? 1 : perSecond.started / (limit.perSecond ?? 1),
    isFull: isHeld,
    note: `${isHeld ? said.noTurn : said.rateRoom} ${othersText(limit, queue)}`,
  };
}

function othersText({ queues }: Schemas['LimitView'], queue: string): string {
  const others = queues.filter((name) => name !== queue);
  return others.length === 0 ? said.sharedAlone : said.sharedWith(others.join(', '));
}
