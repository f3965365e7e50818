/**
 * An answer as its type says it: `answers.Job` is what `Answers` in `answers.ts` has under this name. Its schema becomes, once,
 * a function that takes the listed fields of a body and nothing else, so nobody looks through the schema for each answer.
 */
import { answerSchemas } from './answer-schemas.ts';
import type { AnswerSchema, Answers } from './answers.ts';

export interface Told<Body> {
  /** The listed fields of a body. */
  readonly listed: (body: Body) => unknown;
  /** As the OpenAPI file names its schema. */
  readonly ref: { readonly $ref: string };
}

type Keep = (value: unknown) => unknown;
type Named = keyof Answers;

const NAME = /[^/]+$/;
const isNamed = (name: string): name is Named => name in answerSchemas;

/** *Go to definition* on a name leads to its type. */
export const answers = Object.fromEntries(
  (Object.keys(answerSchemas) as Named[]).map((name) => {
    const ref = { $ref: `#/components/schemas/${name}` };
    return [name, { ref, listed: keptBy(ref) }];
  }),
) as unknown as { readonly [Name in Named]: Told<Answers[Name]> };

/** What a schema lists. A schema that names another waits for it until somebody needs it: two may name each other. */
function keptBy(schema: AnswerSchema): Keep {
  const { $ref, anyOf, properties, items, additionalProperties, type } = schema;
  if ($ref !== undefined) return keptByName(NAME.exec($ref)?.[0] ?? '');
  if (anyOf) return keptByOne(anyOf);
  if (properties) return keptOfFields(Object.entries(properties).map(([name, one]) => [name, keptBy(one)]));
  if (items) {
    const keep = keptBy(items);
    return (value) => (Array.isArray(value) ? value.map(keep) : null);
  }
  if (additionalProperties) {
    const keep = keptBy(additionalProperties);
    return (value) =>
      isObject(value) && Object.fromEntries(Object.entries(value).map(([name, one]) => [name, keep(one)]));
  }
  // Of a schema without a type everything is listed. An object where a text or a number is listed has no listed field.
  return type === undefined ? (value) => value : (value) => (isObject(value) ? null : value);
}

function keptByName(name: string): Keep {
  // The settings of a queue are made of their own table.
  if (!isNamed(name)) return (value) => value;
  let keep: Keep | undefined;
  return (value) => {
    keep ??= keptBy(answerSchemas[name]);
    return keep(value);
  };
}

/** Of a text or a number the first that is none of an object; of an object or a list the first whose needed fields are there. */
function keptByOne(schemas: readonly AnswerSchema[]): Keep {
  const all = schemas.map((schema) => {
    const { required = [], ...whole } = schema.$ref === undefined ? schema : (named(schema.$ref) ?? {});
    return { required, kind: kindOf(whole), keep: keptBy(schema) };
  });
  return (value) => {
    const kind = Array.isArray(value) ? 'list' : isObject(value) ? 'object' : 'one';
    const has = (name: string) => isObject(value) && name in value;
    return all.find((one) => (one.kind === kind || one.kind === 'any') && one.required.every(has))?.keep(value);
  };
}

function kindOf({
  anyOf,
  properties,
  items,
  additionalProperties,
  type,
}: AnswerSchema): 'object' | 'list' | 'one' | 'any' {
  if (properties || additionalProperties) return 'object';
  if (items) return 'list';
  return anyOf || type === undefined ? 'any' : 'one';
}

function named($ref: string): AnswerSchema | undefined {
  const name = NAME.exec($ref)?.[0] ?? '';
  return isNamed(name) ? answerSchemas[name] : undefined;
}

function keptOfFields(fields: readonly (readonly [name: string, keep: Keep])[]): Keep {
  return (value) => {
    if (!isObject(value)) return null;
    const kept: Record<string, unknown> = {};
    for (const [name, keep] of fields) {
      const one = Reflect.get(value, name);
      if (one !== undefined) kept[name] = keep(one);
    }
    return kept;
  };
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
