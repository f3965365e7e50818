/**
 * Settings of a queue that are stored with it in Redis and hold for every process: as people look at them, in the words in which
 * they are said, and changed at any time.
 */

import { isGated, limitsText } from '../../job/gate.ts';
import {
  decodeSettings,
  fieldSaid,
  type GateName,
  type GateSettings,
  parseGroupLimits,
  parseGroupName,
  type QueueSettingOptions,
  type QueueSettings,
  type SettingName,
  saidOf,
  settingFields,
  settingNames,
} from '../../job/queue-settings.ts';
import type { Rate } from '../../job/rate.ts';
import { systemClock } from '../../kernel/clock.ts';
import { groupOfKey, type Layers, type Overriding, settingOfKey } from '../../redis/scripts/overrides.ts';
import { type QueueLayout, setGroup, setQueue, unsetQueue } from '../../redis/scripts/queues.ts';
import { createRepeating } from '../calls/retry.ts';
import { layoutOfQueue, type Namespaced } from './refs.ts';

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

/** A setting that somebody set by command, above what the definition says. */
export interface SettingOverride {
  /** As it is said; `perGroup` stands for all that is said of each group. */
  readonly setting: string;
  /** Where the limits of one group are meant. */
  readonly group?: string | undefined;
  readonly value: unknown;
  /** What the definition says; undefined: nothing. */
  readonly code?: unknown;
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
}

/** The settings of a queue, and which of them are overrides. */
export interface QueueSettingsView {
  readonly settings: QueueSettingOptions;
  readonly overrides: readonly SettingOverride[];
}

/** @throws DuestreamError `not-found` */
export const queueSettings = async (place: Namespaced, queue: string): Promise<QueueSettingsView> =>
  settingsView(await layoutOfQueue(place, queue));

const settingsView = (layout: QueueLayout): QueueSettingsView => ({
  // Nothing is redacted, and somebody says so.
  settings: { ...saidOf(layout), ...(layout.layers?.set.redact && { redact: layout.redact ?? [] }) },
  overrides: overridesOf(layout),
});

/**
 * Overrides what is said, and leaves the rest. It holds until it is taken back, whatever definitions say. Limits hold when the
 * call returns; all processes follow the rest within half a minute.
 *
 * @returns what holds now, and which of the settings were others before
 * @throws DuestreamError `not-found`, `bad-input` for what the partitions of the queue cannot share
 */
export const changeSettings = (place: Namespaced, queue: string, wanted: QueueSettings, by: Overriding) =>
  changed(place, queue, () => setQueue(place.redis, { namespace: place.namespace, queue, by, ...wanted }));

/**
 * Takes overrides back, so that what definitions say holds again.
 *
 * @param isForgotten also what definitions have said, until a process says it again
 * @throws DuestreamError `not-found`, `bad-input`
 */
export const unsetSettings = (
  place: Namespaced,
  queue: string,
  { settings, isForgotten = false }: { readonly settings: readonly SettingName[]; readonly isForgotten?: boolean },
) => changed(place, queue, () => unsetQueue(place.redis, { namespace: place.namespace, queue, settings, isForgotten }));

async function changed(
  place: Namespaced,
  queue: string,
  change: () => Promise<void>,
): Promise<QueueSettingsView & { readonly changed: readonly string[] }> {
  const { read, write } = createRepeating('set', { clock: systemClock, budgetMs: BUDGET_MS });
  const before: QueueSettings = await read(() => layoutOfQueue(place, queue));
  await write(change);
  const layout = await read(() => layoutOfQueue(place, queue));
  const after: QueueSettings = layout;
  const isOther = (name: SettingName) => JSON.stringify(before[name]) !== JSON.stringify(after[name]);
  return {
    ...settingsView(layout),
    changed: settingNames.filter(isOther).map(fieldSaid),
  };
}

/**
 * Overrides the limits of one group, or of all whose names begin so.
 *
 * @returns whether anything is different now
 * @throws DuestreamError `not-found`, `bad-input`
 */
export async function changeGroup(
  { redis, namespace }: Namespaced,
  {
    queue,
    group,
    limits,
    by,
  }: { readonly queue: string; readonly group: string; readonly limits: unknown; readonly by: Overriding },
): Promise<boolean> {
  const name = parseGroupName(group);
  const { write } = createRepeating('set', { clock: systemClock, budgetMs: BUDGET_MS });
  return write(() => setGroup(redis, { namespace, queue, group: name, limits: parseGroupLimits(name, limits), by }));
}

export function overridesOf({ layers = NONE }: Pick<QueueLayout, 'layers'>): readonly SettingOverride[] {
  return Object.entries(layers.set).map(([key, { value, by, why: reason, atMs }]) => {
    const [name, group] = [settingOfKey(key) as SettingName, groupOfKey(key)];
    const word = settingFields.find((field) => field.name === name)?.word;
    const said = (text: string | null | undefined) =>
      text && word ? saidOf(decodeSettings({ [name]: text }))[word] : undefined;
    const whole = group === undefined ? value : JSON.stringify({ [group]: JSON.parse(value) });
    const code = said(layers.code[name]);
    const own = (of: unknown) => (group === undefined ? of : (of as QueueSettingOptions['groups'])?.[group]);
    return { setting: word ?? name, group, value: own(said(whole)), code: own(code), by, reason, atMs };
  });
}

const NONE: Layers = { code: {}, set: {} };

/** ` (set by ada, incident 7; code says 100/s)` */
export function overrideNote({ by, reason, code }: SettingOverride): string {
  const who = [by === '' ? 'set by command' : `set by ${by}`, ...(reason === '' ? [] : [reason])].join(', ');
  return ` (${who}; code says ${code === undefined ? 'nothing' : saidText(code)})`;
}

/** A setting in one line, as it is said. */
export function saidText(value: unknown): string {
  if (value === false) return 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Undefined: the queue is not gated. */
export function limitsOf(settings: GateSettings & Pick<QueueLayout, 'layers'>): QueueLimits | undefined {
  if (!isGated(settings)) return undefined;
  const { rate, concurrency, perGroup, fair } = settings;
  const all = Object.entries(settings.layers?.set ?? {});
  const noteOf = (name: GateName) => {
    const [one] = overridesOf({
      layers: { ...NONE, ...settings.layers, set: Object.fromEntries(all.filter(([key]) => key === name)) },
    });
    const groups = all.filter(([key]) => groupOfKey(key) !== undefined).length;
    if (one) return one.code === undefined ? '' : overrideNote(one);
    return name === 'groups' && groups > 0 ? ` (${groups} set by command)` : '';
  };
  return {
    text: limitsText(settings, noteOf),
    ...(rate && { rate }),
    ...(concurrency && { concurrency }),
    ...(perGroup && { perGroup }),
    ...(fair && { fair }),
  };
}
