/**
 * Settings of a queue that are stored with it in Redis and hold for every process: as people look at them, in the words in which
 * they are said, and changed at any time.
 */

import { isGated, limitsText } from '../../job/gate.ts';
import {
  changeOf,
  decodeSettings,
  fieldSaid,
  type GateName,
  type GateSettings,
  type QueueSettingOptions,
  type QueueSettings,
  type SettingName,
  saidOf,
  settingFields,
  settingNames,
  valueText,
} from '../../job/queue-settings.ts';
import { type Rate, ratesOf } from '../../job/rate.ts';
import { checkNames, wordsIn } from '../../kernel/checks.ts';
import { systemClock } from '../../kernel/clock.ts';
import { userHere } from '../../redis/audit.ts';
import { groupOfKey, type Layers, type Overriding, settingOfKey } from '../../redis/scripts/overrides.ts';
import type { QueueLayout } from '../../redis/scripts/queues.ts';
import type { Repeating } from '../calls/retry.ts';
import { layoutOfQueue, type Namespaced } from './refs.ts';

/** How much runs at once, of a gated queue. */
export interface QueueLimits {
  /** In short: `10/s · 5 at once · 1 per group`. */
  readonly text: string;
  readonly rate?: Rate | undefined;
  /** Of two rates the second: both hold. */
  readonly secondRate?: Rate | undefined;
  readonly concurrency?: number | undefined;
  readonly perGroup?: number | undefined;
  readonly fair?: true | undefined;
  /** A job may cost more than one turn of a rate. */
  readonly costs?: true | undefined;
}

/** A setting that somebody set by command, above what the definition says. */
export interface SettingOverride {
  /** As it is said; `perGroup` stands for all that is said of each group. */
  readonly setting: string;
  /** Where the limits of one group are meant. */
  readonly group?: string | undefined;
  readonly value: unknown;
  /** What the definition says; undefined: nothing. */
  readonly code?: unknown;
  /** The name of a token, or the user of a machine. */
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
}

/** The settings of a queue, and which of them are overrides. */
export interface QueueSettingsView {
  readonly settings: QueueSettingOptions;
  readonly overrides: readonly SettingOverride[];
}

export const settingsView = (layout: QueueLayout): QueueSettingsView => ({
  // Nothing is redacted, and somebody says so.
  settings: { ...saidOf(layout), ...(layout.layers?.set.redact && { redact: layout.redact ?? [] }) },
  overrides: overridesOf(layout),
});

/** The settings that hold now, and the names of those that were others before. */
export interface QueueSettingsChange extends QueueSettingsView {
  readonly changed: readonly string[];
  /** Those alone, as they were said before; of `groups` the first 20 that differ. */
  readonly before: QueueSettingOptions;
  /** The same as they are now. */
  readonly after: QueueSettingOptions;
}

/** Who makes a change. */
export interface ByOption {
  /** At most 200 characters. Default: the user of this process. */
  readonly by?: string | undefined;
}

/** Why settings are changed, and by whom, for people who look at the queue. */
export interface SettingReason extends ByOption {
  /** At most 200 characters. */
  readonly reason?: string | undefined;
}

/** @throws DuestreamError `bad-input` */
export const byIn = ({ by = userHere() }: ByOption): string => wordsIn(by, 'by');

/** @throws DuestreamError `bad-input` */
export function overridingOf(options: SettingReason, owner: string): Overriding {
  checkNames(options, ['reason', 'by'], owner, 'bad-input');
  const { reason = '' } = options;
  return { by: byIn(options), why: wordsIn(reason, 'reason'), atMs: systemClock.wallMs() };
}

/** Overrides settings or takes overrides back, and says what holds then. @throws DuestreamError `not-found`, `bad-input` */
export async function changeSettings(
  { steps, ...place }: Namespaced & { readonly steps: Repeating },
  queue: string,
  change: () => Promise<void>,
): Promise<QueueSettingsChange> {
  const before: QueueSettings = await steps.read(() => layoutOfQueue(place, queue));
  await steps.write(change);
  const layout = await steps.read(() => layoutOfQueue(place, queue));
  const after: QueueSettings = layout;
  const isOther = (name: SettingName) => JSON.stringify(before[name]) !== JSON.stringify(after[name]);
  const others = changeOf(before, after) ?? { before: {}, after: {} };
  return { ...settingsView(layout), changed: settingNames.filter(isOther).map(fieldSaid), ...others };
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
export function overrideNote({ setting, by, reason, code }: SettingOverride): string {
  const who = [by === '' ? 'set by command' : `set by ${by}`, ...(reason === '' ? [] : [reason])].join(', ');
  return ` (${who}; code says ${code === undefined ? 'nothing' : valueText(setting, code)})`;
}

/** Undefined: the queue is not gated. */
export function limitsOf(settings: GateSettings & Pick<QueueLayout, 'layers'>): QueueLimits | undefined {
  if (!isGated(settings)) return undefined;
  const { concurrency, perGroup, fair, costs } = settings;
  const [first, second] = ratesOf(settings.rate);
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
    ...(first && { rate: first }),
    ...(second && { secondRate: second }),
    ...(concurrency && { concurrency }),
    ...(perGroup && { perGroup }),
    ...(fair && { fair }),
    ...(costs && { costs }),
  };
}
