/** How much of each limit is used at this moment: room is grey, a full one is coloured. */
import type { Schemas } from '../../api-types.ts';
import type { LiveQueue } from '../../live.ts';
import { ratesOf, ratesText } from '../../parts/rates.ts';
import { bytesText, durationText, numberText, relativeText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { Gauge, type Reading } from './gauge.tsx';
import type { Why } from './seen.ts';
import { SharedGauges } from './shared.tsx';

const { limits: said, flow } = words.queue;

export interface LimitsSeen {
  readonly found: LiveQueue;
  readonly why: Why | undefined;
  readonly settings: Schemas['SettingsView'] | undefined;
  /** Those with most jobs in line. */
  readonly groups?: readonly Schemas['Group'][] | undefined;
}

export function Limits({ found, why, settings, groups = [] }: LimitsSeen) {
  const { limits, quota } = found;
  const shared = settings?.settings.limits ?? [];
  const gauges = [
    rateGauge(found, why, settings),
    concurrencyGauge(found, settings),
    ...quotaGauges(found),
    slotsGauge(found),
  ].flatMap((one) => one ?? []);
  if (limits === undefined && quota === undefined) return null;
  return (
    <section aria-labelledby="limits">
      <header class="sec">
        <h2 id="limits">{said.title}</h2>
        <p>{said.text}</p>
      </header>
      <ul class="gauges">
        {gauges.map((gauge) => (
          <Gauge key={gauge.name} {...gauge} />
        ))}
        {shared.length === 0 ? null : <SharedGauges {...{ found, why }} names={shared} />}
        {limits?.perGroup === undefined ? null : <PerGroup groups={groups} limit={limits.perGroup} />}
      </ul>
    </section>
  );
}

function rateGauge(
  { limits, perSecond }: LiveQueue,
  why: Why | undefined,
  settings: LimitsSeen['settings'],
): Reading | undefined {
  // Of two rates the faster one: a look sees a second, and who waits for the slower one is told that it is shut.
  const mostPerSecond = Math.max(0, ...ratesOf(limits).map(({ limit, perMs }) => (limit * 1000) / perMs));
  if (mostPerSecond === 0) return undefined;
  const held = why?.reasons.find(({ heldBy }) => heldBy === 'rate');
  // A rate of less than one per second is full for longer than a look sees.
  const share = held === undefined ? perSecond.started / mostPerSecond : 1;
  const next = held?.nextMs === undefined ? undefined : Math.max(0, held.nextMs - (why?.nowMs ?? held.nextMs));
  const note = next === undefined ? said.rateRoom : said.nextTurn(durationText(next));
  return {
    name: said.rate,
    used: `${numberText(perSecond.started)}${flow.perSecond}`,
    of: said.rateOf(ratesText(limits)),
    share,
    isFull: held !== undefined,
    note: `${note} ${setterText(settings, 'rate')}`,
  };
}

/** Who set it by command. */
function setterText(settings: LimitsSeen['settings'], setting: string): string {
  const one = settings?.overrides.find((override) => override.setting === setting && override.group === undefined);
  return one === undefined ? '' : said.setBy(one.by, relativeText(one.atMs, Date.now()));
}

/** A job that was let through counts from then on, also before a worker has started it. */
function concurrencyGauge(
  { limits, running, ready }: LiveQueue,
  settings: LimitsSeen['settings'],
): Reading | undefined {
  const most = limits?.concurrency;
  if (most === undefined) return undefined;
  const used = Math.min(most, running + ready);
  const note = used >= most ? said.noRoom : said.room(numberText(most - used));
  return {
    name: said.concurrency,
    used: numberText(used),
    of: said.of(numberText(most)),
    share: used / most,
    isFull: used >= most,
    note: `${note} ${setterText(settings, 'concurrency')}`,
  };
}

function quotaGauges({ quota }: LiveQueue): readonly Reading[] {
  if (quota === undefined) return [];
  const gauge = (name: string, used: number, most: number, text: (value: number) => string): Reading => ({
    name,
    used: text(used),
    of: said.of(text(most)),
    share: used / most,
    isFull: used >= most,
    note: used >= most ? said.pendingFull : said.pendingRoom,
  });
  return [
    ...(quota.pendingMax > 0 ? [gauge(said.pending, quota.pending, quota.pendingMax, numberText)] : []),
    ...(quota.bytesMax > 0 ? [gauge(said.bytes, quota.bytes, quota.bytesMax, bytesText)] : []),
  ];
}

function slotsGauge({ running, ready, waiting, slots, workers }: LiveQueue): Reading | undefined {
  if (slots === undefined) return undefined;
  const isFull = slots > 0 && running >= slots;
  const text = flow.workers(workers);
  return {
    name: said.slots,
    used: numberText(running),
    of: said.of(numberText(slots)),
    share: slots === 0 ? 0 : running / slots,
    isFull,
    note:
      slots === 0
        ? said.noSlots
        : isFull
          ? said.slotsFull(text)
          : waiting > 0 && ready === 0
            ? said.slotsFree(text)
            : `${text}.`,
  };
}

/** Of the groups that wait, the fullest: each group has the limit for itself. */
function PerGroup({ groups, limit }: { readonly groups: readonly Schemas['Group'][]; readonly limit: number }) {
  const most = groups.reduce((sum, { running, perGroup = limit }) => Math.max(sum, running / perGroup), 0);
  const full = groups.filter(({ isFull }) => isFull).length;
  const fullest = groups.find(({ running, perGroup = limit }) => running / perGroup === most);
  return (
    <Gauge
      name={said.perGroup}
      used={numberText(fullest?.running ?? 0)}
      of={said.of(numberText(fullest?.perGroup ?? limit))}
      share={most}
      isFull={full > 0}
      note={full > 0 ? said.fullGroups(full) : said.noFullGroup}
    />
  );
}
