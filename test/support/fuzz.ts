/** Requests made from an OpenAPI file: well formed by its schemas, or with one thing wrong. The same seed, the same requests. */

type Json = ReturnType<typeof JSON.parse>;

export interface Random {
  /** From 0 to below 1. */
  readonly next: () => number;
  readonly below: (end: number) => number;
  readonly of: <T>(list: readonly T[]) => T;
  readonly chance: (share: number) => boolean;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (end: number) => Math.floor(next() * end);
  return {
    next,
    below,
    chance: (share) => next() < share,
    of(list) {
      const one = list[below(list.length)];
      if (one === undefined) throw new Error('nothing to choose from');
      return one;
    },
  };
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly spec: Json;
}

export function operationsOf(document: Json): readonly Operation[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).flatMap(([method, spec]) =>
      spec.operationId === undefined ? [] : [{ id: spec.operationId, method: method.toUpperCase(), path, spec }],
    ),
  );
}

/** Values for fields whose meaning no schema says: by their name. Undefined: the schema decides. */
export type Pools = (field: string, random: Random) => unknown;

/** A value that the schema takes. */
export function made(document: Json, schema: Json, { random, pools, field }: Making): Json {
  const chosen = pools(field, random);
  if (chosen !== undefined) return chosen;
  if (schema.$ref !== undefined) {
    const target = document.components.schemas[schema.$ref.split('/').at(-1)];
    return made(document, target, { random, pools, field });
  }
  const either = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (schema.example !== undefined && random.chance(0.6)) return schema.example;
  if (either) return made(document, random.of(either), { random, pools, field });
  if (schema.enum) return random.of(schema.enum);
  if (schema.const !== undefined) return schema.const;
  const type = Array.isArray(schema.type) ? random.of<string>(schema.type) : schema.type;
  return ofType(document, schema, { random, pools, field, type });
}

interface Making {
  readonly random: Random;
  readonly pools: Pools;
  readonly field: string;
}

function ofType(
  document: Json,
  schema: Json,
  { type, ...making }: Making & { readonly type: string | undefined },
): Json {
  const { random, field } = making;
  switch (type) {
    case 'object':
      return objectOf(document, schema, making);
    case 'array': {
      const length = Math.max(schema.minItems ?? 0, random.below(Math.min(schema.maxItems ?? 4, 4)));
      return Array.from({ length }, () => made(document, schema.items, { ...making, field: `${field}[]` }));
    }
    case 'integer':
    case 'number': {
      const [min, max] = [schema.minimum ?? 0, Math.min(schema.maximum ?? 1000, 1_000_000)];
      return min + random.below(max - min + 1);
    }
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'string':
      return schema.example ?? 'text'.slice(0, schema.maxLength ?? 4);
    default:
      return random.of([null, 1, 'text', [1, 2], { a: { b: 'c' } }]);
  }
}

function objectOf(document: Json, schema: Json, { random, pools, field }: Making): Json {
  const object: Json = {};
  const required: readonly string[] = schema.required ?? [];
  for (const [name, of] of Object.entries<Json>(schema.properties ?? {})) {
    if (!required.includes(name) && random.chance(0.75)) continue;
    object[name] = made(document, of, { random, pools, field: field === '' ? name : `${field}.${name}` });
  }
  return object;
}

const NONSENSE: readonly Json[] = [
  ...[
    null,
    true,
    -1,
    0,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER,
    '',
    ' ',
    'x'.repeat(5000),
    '\u0000',
    '\u001b[31m',
    '💥',
    '../..',
  ],
  ...[
    [],
    {},
    [[]],
    { a: 1 },
    'Infinity',
    '__proto__',
    '<script>alert(1)</script>',
    "'; FLUSHALL",
    '{schedule:x}y',
    '1e9d',
    'P1Y',
  ],
];

/** The same with one thing wrong; it may be taken all the same. */
export function spoilt(value: Json, random: Random): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.1)) return random.of(NONSENSE);
  const keys = Object.keys(value);
  if (keys.length === 0 || random.chance(0.2))
    return Array.isArray(value) ? [...value, random.of(NONSENSE)] : { ...value, unknown: 1 };
  const key = random.of(keys);
  const part = spoilt(value[key], random);
  return Array.isArray(value) ? value.with(Number(key), part) : { ...value, [key]: part };
}

export const nonsense = (random: Random): Json => random.of(NONSENSE);
