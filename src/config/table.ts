/**
 * How an option is described, and how a schema becomes a flat table of options. What the options are is `options.ts`.
 */
import { z } from 'zod';
import type { Range } from '../core/ranges.ts';

export type Unit = 'ms' | 'bytes';

interface About {
  /** How text from the environment or the command line becomes a value; backoffs can only be written in the file. */
  readonly kind: 'number' | 'text' | 'list' | 'backoff';
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
export const ms = (fallback: number, { min, max }: Range, doc: string) =>
  whole(fallback, { min, max, unit: 'ms', doc });

function aboutNumber({ min, max, ...rest }: AboutRange): About {
  const suffix = rest.unit === undefined ? '' : ` ${rest.unit}`;
  return { ...rest, kind: 'number', allowed: `${min} to ${max}${suffix}` };
}

/** The environment variable of an option: `mover.leaseMs` → `DUESTREAM_MOVER__LEASE_MS`; none for queues. */
export function envName({ key, env, kind }: Option): string | undefined {
  if (env !== undefined) return env;
  if (kind === 'backoff' || key.startsWith('queues.')) return undefined;
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
