/**
 * Settings of a queue that are stored with it in Redis and hold for every process: as people look at them, in the words in which
 * they are said, and changed at any time.
 */
import { createRepeating } from '../client/calls/retry.ts';
import { type Broadcast, type BroadcastOptions, parseBroadcast } from '../job/broadcast.ts';
import {
  type GateOptions,
  type GateSettings,
  type GroupSettings,
  isGated,
  limitsText,
  parseGates,
  type Rate,
  type RateInput,
  rateInput,
} from '../job/gate.ts';
import { type History, type HistoryOptions, parseHistory } from '../job/history.ts';
import { parseLinger } from '../job/queue.ts';
import { parseLimit } from '../job/quota.ts';
import { parseRedact } from '../job/redaction.ts';
import { systemClock } from '../kernel/clock.ts';
import { type DurationInput, durationText } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type QueueSettings, setQueue, settingsOf } from '../redis/scripts/queues.ts';
import { layoutOfQueue, type Namespaced } from './refs.ts';

/** As they are said; left out: nobody ever said it. */
export interface SaidSettings {
  readonly history?: HistoryOptions | boolean | undefined;
  readonly redact?: readonly string[] | undefined;
  readonly broadcast?: BroadcastOptions | boolean | undefined;
  readonly maxPending?: number | false | undefined;
  readonly maxBytes?: number | false | undefined;
  readonly linger?: DurationInput | undefined;
  readonly rate?: SaidRate | undefined;
  readonly concurrency?: number | false | undefined;
  readonly perGroup?: number | false | Omit<SaidGroup, 'weight'> | undefined;
  readonly groups?: Readonly<Record<string, SaidGroup>> | undefined;
  readonly fair?: true | undefined;
}

type SaidRate = string | Exclude<RateInput, string> | false;

interface SaidGroup {
  readonly concurrency?: number | false | undefined;
  readonly rate?: SaidRate | undefined;
  readonly maxPending?: number | false | undefined;
  readonly weight?: number | undefined;
}

/** How much runs at once, of a gated queue. */
export interface QueueLimits {
  /** In short: `10/s · 5 at once · 1 per group`. */
  readonly text: string;
  readonly rate?: Rate | undefined;
  readonly concurrency?: number | undefined;
  readonly perGroup?: number | undefined;
  readonly fair?: true | undefined;
}

const BUDGET_MS = 10_000;
const REASON_CHARS_MAX = 200;

/** @throws DuestreamError `usage` for a reason that is too long */
export function checkReason(reason: string): void {
  if (reason.length <= REASON_CHARS_MAX) return;
  throw new DuestreamError('usage', `the reason has ${reason.length} characters; allowed: ${REASON_CHARS_MAX}`);
}

/** As they are stored: only what is said. @throws DuestreamError `bad-input` */
export const parseSettings = ({ history, redact, broadcast, maxPending, maxBytes, linger, ...gates }: SaidSettings) =>
  settingsOf({
    history: parseHistory(history),
    redact: parseRedact(redact),
    broadcast: parseBroadcast(broadcast),
    maxPending: parseLimit('maxPending', maxPending),
    maxBytes: parseLimit('maxBytes', maxBytes),
    lingerMs: parseLinger(linger),
    ...parseGates(gates as GateOptions),
  });

/** @throws DuestreamError `not-found` */
export const queueSettings = async (place: Namespaced, queue: string): Promise<SaidSettings> =>
  saidOf(await layoutOfQueue(place, queue));

/**
 * Changes what is said, and leaves the rest. Limits hold when the call returns; all processes follow the rest within half a
 * minute.
 *
 * @returns what holds now, and which of the settings were others before
 * @throws DuestreamError `not-found`, `bad-input` for what the partitions of the queue cannot share
 */
export async function changeSettings(
  place: Namespaced,
  queue: string,
  wanted: QueueSettings,
): Promise<{ readonly settings: SaidSettings; readonly changed: readonly string[] }> {
  const { redis, namespace } = place;
  const { read, write } = createRepeating('set', { clock: systemClock, budgetMs: BUDGET_MS });
  const before = await read(() => layoutOfQueue(place, queue));
  await write(() => setQueue(redis, { namespace, queue, ...wanted }));
  const names = Object.keys(wanted) as (keyof QueueSettings)[];
  return {
    settings: saidOf({ ...before, ...wanted }),
    changed: names
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(wanted[name]))
      .map((name) => (name === 'lingerMs' ? 'linger' : name)),
  };
}

function saidOf({ history, redact, broadcast, maxPending, maxBytes, lingerMs, ...gates }: QueueSettings): SaidSettings {
  const { rate, concurrency, groups, fair } = gates;
  return {
    history: history && historyInput(history),
    redact,
    broadcast: broadcast && broadcastInput(broadcast),
    maxPending: mostSaid(maxPending),
    maxBytes: mostSaid(maxBytes),
    linger: lingerMs && durationText(lingerMs),
    rate: rateSaid(rate),
    concurrency: mostSaid(concurrency),
    perGroup: perGroupSaid(gates),
    groups: groups && Object.fromEntries(Object.entries(groups).map(([name, limits]) => [name, groupSaid(limits)])),
    fair,
  };
}

const rateSaid = (rate: Rate | 0 | undefined) => (rate === 0 ? false : rate && rateInput(rate));

const mostSaid = (count: number | undefined) => (count === 0 ? false : count);

/** A number where nothing else is limited. */
function perGroupSaid({ perGroup, groupRate, groupPending }: GateSettings): SaidSettings['perGroup'] {
  if (!groupRate && !groupPending) return mostSaid(perGroup ?? groupRate ?? groupPending);
  return { concurrency: mostSaid(perGroup), rate: rateSaid(groupRate), maxPending: mostSaid(groupPending) };
}

const groupSaid = ({ concurrency, rate, maxPending, weight }: GroupSettings): SaidGroup => ({
  concurrency: mostSaid(concurrency),
  rate: rateSaid(rate),
  maxPending: mostSaid(maxPending),
  weight,
});

const historyInput = ({ isOn, keepMs, max, keepsResult, resultBytesMax }: History): HistoryOptions | false =>
  isOn && { keep: durationText(keepMs), max, result: keepsResult, resultBytesMax };

const broadcastInput = ({ isOn, max, bytes, ageMs }: Broadcast): BroadcastOptions | false =>
  isOn && { max, bytes, age: durationText(ageMs) };

/** Undefined: the queue is not gated. */
export function limitsOf(settings: GateSettings): QueueLimits | undefined {
  if (!isGated(settings)) return undefined;
  const { rate, concurrency, perGroup, fair } = settings;
  return {
    text: limitsText(settings),
    ...(rate && { rate }),
    ...(concurrency && { concurrency }),
    ...(perGroup && { perGroup }),
    ...(fair && { fair }),
  };
}
