/**
 * The settings of a queue in two layers: what its definition says, and above it what somebody set by command. An override
 * holds until it is taken back, whatever processes start with which definition meanwhile.
 *
 * Each setting has its field in the registry, and the field always has what holds: a process that knows no overrides reads
 * it and does the right thing. Beside these fields `overrides` says which settings are overridden, by whom and why, and what
 * the definition says of them: a definition that differs is noted there, and the setting stays. A process of 0.2.0 writes
 * its definition over the setting all the same; whoever reads both takes the override.
 */
import { type SettingName, settingNames } from '../../job/queue-settings.ts';

/** As they stand in the registry. */
export type Stored = {
  readonly [Name in SettingName | 'lingerDefaultMs' | 'versions' | 'sharedLimits' | 'overrides' | 'asked']?:
    | string
    | null
    | undefined;
};

/** Who overrides a setting, when and why. */
export interface Overriding {
  /** The name of a token, or the user of a machine. */
  readonly by: string;
  /** In the words of whoever did it; may be empty. */
  readonly why: string;
  readonly atMs: number;
}

/** One override: of a setting, or of the limits of one group. */
export interface Override extends Overriding {
  /** As the field of the setting has it; of one group, as its entry in the JSON of `groups`. */
  readonly value: string;
}

export interface Layers {
  /** What definitions say. */
  readonly code: Stored;
  /** By the name of a setting, or `groups:<group>`. */
  readonly set: Readonly<Record<string, Override>>;
}

const GROUP = 'groups:';
export const keyOfGroup = (group: string): string => GROUP + group;

/** The group that an override is about; undefined: it is about a whole setting. */
export const groupOfKey = (key: string): string | undefined =>
  key.startsWith(GROUP) ? key.slice(GROUP.length) : undefined;

/** The setting that an override is about. */
export const settingOfKey = (key: string): string => (key.startsWith(GROUP) ? 'groups' : key);

/** The layers of what is stored. What nobody can read overrides nothing. */
export function layersOf({ overrides, ...fields }: Stored): Layers {
  const { set, code } = parsed(overrides);
  const under = Object.keys(set).map((key) => [settingOfKey(key), code[settingOfKey(key)] ?? null]);
  return { code: { ...fields, ...Object.fromEntries(under) }, set };
}

/** What holds: each setting as it is overridden, or else as its definition says. */
export function effective({ code, set }: Layers): Stored {
  const over: Record<string, string> = {};
  const groups: Record<string, unknown> = jsonOf(set.groups?.value ?? code.groups);
  for (const [key, { value }] of Object.entries(set)) {
    const group = groupOfKey(key);
    if (group === undefined) over[key] = value;
    else groups[group] = jsonOf(value);
  }
  if (Object.keys(set).every((key) => groupOfKey(key) === undefined)) return { ...code, ...over };
  const sorted = Object.entries(groups).sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...code, ...over, groups: JSON.stringify(Object.fromEntries(sorted)) };
}

/** All fields of the registry that say this. */
export function fieldsOf(layers: Layers): Stored {
  const { code, set } = layers;
  const names = [...new Set(Object.keys(set).map(settingOfKey))];
  const under = names.flatMap((name) => (code[name as SettingName] ? [[name, code[name as SettingName]]] : []));
  const overrides = names.length === 0 ? null : JSON.stringify({ set, code: Object.fromEntries(under) });
  return { ...effective(layers), overrides };
}

/** What is to be written where this is stored: fields and values as pairs; '' = the field goes. */
export const toWrite = (fields: Stored, stored: Stored): readonly string[] =>
  [...settingNames, 'overrides' as const].flatMap((name) => {
    const value = fields[name] ?? '';
    return value === (stored[name] ?? '') ? [] : [name, value];
  });

function jsonOf(text: string | null | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return isObject(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

function parsed(text: string | null | undefined): Pick<Layers, 'set'> & { readonly code: Record<string, string> } {
  const { set, code } = jsonOf(text);
  const isRead = isObject(set) && isObject(code) && Object.values(set).every(isOverride);
  return isRead ? ({ set, code } as ReturnType<typeof parsed>) : { set: {}, code: {} };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function isOverride(one: unknown): one is Override {
  if (!isObject(one)) return false;
  return [one.value, one.by, one.why].every((text) => typeof text === 'string') && typeof one.atMs === 'number';
}
