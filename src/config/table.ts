/**
 * How an option is described, and how a schema becomes a flat table of options. What the options are is `options.ts`.
 */
import { z } from 'zod';
import type { WorkerOption } from '../job/worker-options.ts';
import type { Range } from '../kernel/checks.ts';
import { type DurationInput, durationMs, durationText } from '../kernel/duration.ts';
import { withoutCredentials } from '../kernel/reason.ts';

export type Unit = 'bytes';

/** Milliseconds that were written as a duration. Their option is called `lease`, and the value in `Config` `leaseMs`. */
export type Ms = number & z.$brand<'ms'>;

interface About {
  /** How text from the environment or the command line becomes a value; what belongs to a queue can only be written in the file. */
  readonly kind: 'number' | 'duration' | 'text' | 'list' | 'backoff';
  readonly doc: string;
  readonly allowed: string;
  readonly unit?: Unit;
  /** Hidden wherever values are shown: `value` wholly, `credentials` only the user part of a URL. */
  readonly secret?: 'value' | 'credentials';
  /** The flag of the command line without its dashes; most options have none. */
  readonly flag?: string;
  /** The environment variable where it is not the one derived from the key. */
  readonly env?: string;
}

/** One line of the table. A key such as `queues.*.attempts` stands for every queue. */
export interface Option extends About {
  readonly key: string;
  readonly schema: z.ZodType;
  /** The default; undefined for the options of a queue, which fall back to its definition in code. */
  readonly fallback: unknown;
}

interface AboutRange extends Range {
  readonly unit?: Unit;
  readonly flag?: string;
  readonly doc: string;
}

const registry = z.registry<About>();

/** Puts an option into the table. */
export const option = <S extends z.ZodType>(schema: S, about: About): S => {
  registry.add(schema, about);
  return schema;
};

export const number = (range: AboutRange) => option(z.int().min(range.min).max(range.max), aboutNumber(range));
export const whole = (fallback: number, range: AboutRange) =>
  option(z.int().min(range.min).max(range.max).default(fallback), aboutNumber(range));
/** A duration in text or milliseconds; a text of digits is milliseconds too, as all of the environment is text. */
export const milliseconds = ({ min, max }: Range) =>
  z
    .custom<DurationInput>((value) => typeof value === 'number' || typeof value === 'string')
    .transform((value, context) => {
      const ms = msOf(value);
      if (ms === undefined) context.addIssue('no duration');
      return ms ?? 0;
    })
    .pipe(z.int().min(min).max(max).brand<'ms'>());

function msOf(value: DurationInput): number | undefined {
  if (typeof value === 'number') return value;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text);
  try {
    return durationMs(text, 'duration');
  } catch {
    return undefined;
  }
}

interface AboutDuration extends Range {
  readonly doc: string;
}

const aboutDuration = ({ doc, min, max }: AboutDuration): About => ({
  doc,
  kind: 'duration',
  allowed: `${durationText(min)} to ${durationText(max)}`,
});

export const duration = (about: AboutDuration) => option(milliseconds(about), aboutDuration(about));
export const ms = (fallbackMs: number, { min, max }: Range, doc: string) =>
  option(milliseconds({ min, max }).prefault(durationText(fallbackMs)), aboutDuration({ min, max, doc }));

type Schema<Row extends WorkerOption> = Row['kind'] extends 'duration'
  ? ReturnType<typeof ms>
  : ReturnType<typeof whole>;

/** Rows of the table that code and configuration share. */
export function shared<Rows extends Readonly<Record<string, WorkerOption>>>(
  rows: Rows,
): { [Name in keyof Rows]: Schema<Rows[Name]> } {
  const made = Object.entries(rows).map(([name, { kind, fallback, ...about }]) => [
    name,
    kind === 'duration' ? ms(fallback, about, about.doc) : whole(fallback, about),
  ]);
  return Object.fromEntries(made);
}

function aboutNumber({ min, max, ...rest }: AboutRange): About {
  const suffix = rest.unit === undefined ? '' : ` ${rest.unit}`;
  return { ...rest, kind: 'number', allowed: `${min} to ${max}${suffix}` };
}

/** The environment variable of an option: `mover.lease` → `DUESTREAM_MOVER__LEASE`; none for what has names of its own, which stands in the file alone. */
export function envName({ key, env }: Option): string | undefined {
  if (env !== undefined) return env;
  if (key.startsWith('queues.') || key === 'sharedLimits') return undefined;
  const words = key.split('.').map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase());
  return `DUESTREAM_${words.join('__')}`;
}

/** The options in a schema, in its order. */
export function* tableOf(node: unknown, path: readonly string[] = []): Generator<Option> {
  if (node instanceof z.ZodType) {
    const known = registry.get(node);
    if (known !== undefined) {
      yield { ...known, key: path.join('.'), schema: node, fallback: node.safeParse(undefined).data };
      return;
    }
  }
  if (node instanceof z.ZodPrefault || node instanceof z.ZodExactOptional) yield* tableOf(node.unwrap(), path);
  if (node instanceof z.ZodRecord) yield* tableOf(node.valueType, [...path, '*']);
  if (node instanceof z.ZodObject) {
    for (const [name, child] of Object.entries(node.shape)) yield* tableOf(child, [...path, name]);
  }
}

/** A value without its secrets. All code that shows a value of the configuration calls this function. */
export function shown(option: Option | undefined, value: unknown): unknown {
  if (option?.secret === undefined || value === '') return value;
  return option.secret === 'credentials' && typeof value === 'string' ? withoutCredentials(value) : '***';
}
