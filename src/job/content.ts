/**
 * What a queue says about the data of its jobs: a schema per job name, and a codec.
 *
 *  scheduled   data ──schema──▶ refused, or as it was given ──JSON──▶ text ──encode──▶ record, with the codec's name
 *  started     record ──decode──▶ text ──JSON──▶ data ──schema──▶ handler, or a dead letter
 *
 * A record holds what went into the schema, and the handler gets what comes out of it. So a schema that converts is asked
 * the same question both times. It is asked about data as JSON carries it: what is taken when a job is scheduled is taken
 * when it is started. Everything but a handler sees the record as it stands.
 */
import { checkFunction, checkNames, hintOf, isPromise } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError, oneLine } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { type DataText, dataText } from './data-json.ts';
import { ABANDONED, DEFAULT_NAME, parseJobName } from './job.ts';
import { parseBounded } from './json-text.ts';
import { Defer } from './outcome.ts';

/** Job name → what checks the data of jobs of that name. `default` is the name of a job that is given none. */
export type JobSchemas = Readonly<Record<string, StandardSchema<unknown>>>;

/** What an encoder is told, which is the same when the data is decoded. */
export interface CodecContext {
  readonly queue: string;
}

/**
 * What data goes through on its way into Redis and out of it: encryption, compression. It is text both times, so bytes
 * have to be written as base64. Both functions may be async.
 *
 * `encode` should give the same text for the same data. If it does not, a call that is repeated after an error
 * (`indeterminate`) is another call, and cannot be recognised once the first one's job has ended.
 *
 * @example const deflate: Codec = { name: 'deflate', encode: (text) => deflateRawSync(text).toString('base64'), decode: (text) => inflateRawSync(Buffer.from(text, 'base64')).toString() };
 */
export interface Codec {
  /** Stands in the record beside the data. 1 to 32 of `a-z 0-9 . _ -`. Default `codec`. */
  readonly name?: string | undefined;
  /** The JSON of data → what is stored. What it throws is thrown by `schedule`. */
  readonly encode: (text: string, context: CodecContext) => string | Promise<string>;
  /**
   * What is stored → the JSON of data, right before the handler. What it throws makes a dead letter with the reason
   * `bad-data`; a `Defer` puts the job aside, for example while a key server is away.
   */
  readonly decode: (text: string, context: CodecContext) => string | Promise<string>;
}

/** The part of a queue that is about data. */
export interface Content {
  readonly name: string;
  readonly jobs?: JobSchemas | undefined;
  readonly codec?: Codec | undefined;
}

/** Data that a codec has encoded. */
export class Sealed {
  readonly text: string;
  readonly codec: string;

  constructor(text: string, codec: string) {
    this.text = text;
    this.codec = codec;
  }
}

/** Thrown where a handler would have been given data that its queue refuses. */
export class BadData extends Error {
  override readonly name = 'BadData';
}

const CODEC_NAME = /^[a-z0-9][a-z0-9._-]{0,31}$/;
const DEFAULT_CODEC = 'codec';

/** @throws DuestreamError `bad-input` */
export function parseJobs(jobs: JobSchemas): JobSchemas {
  if (typeof jobs !== 'object' || jobs === null || Array.isArray(jobs) || Object.keys(jobs).length === 0) {
    throw new DuestreamError('bad-input', `jobs is ${show(jobs)}; allowed: an object of schemas by job name`);
  }
  const parsed = Object.entries(jobs).map(([name, schema]) => [
    parseJobName(name),
    parseSchema(schema, `the schema of ${name}`),
  ]);
  return Object.freeze(Object.fromEntries(parsed));
}

/** @throws DuestreamError `bad-input` */
export function parseCodec(codec: Codec): Codec {
  checkNames(codec, ['name', 'encode', 'decode'], 'a codec', 'bad-input');
  const { name = DEFAULT_CODEC, encode, decode } = codec;
  checkFunction(encode, 'encode of a codec');
  checkFunction(decode, 'decode of a codec');
  if (typeof name === 'string' && CODEC_NAME.test(name)) {
    // Bound: the codec may be an object of a class.
    return Object.freeze({ name, encode: encode.bind(codec), decode: decode.bind(codec) });
  }
  throw new DuestreamError('bad-input', `the codec's name is ${show(name)}; allowed: 1 to 32 of a-z 0-9 . _ -`);
}

/** Whether the data of its jobs goes through anything. */
export const hasContent = ({ jobs, codec }: Content): boolean => jobs !== undefined || codec !== undefined;

/**
 * Data as it goes into the record: its JSON, or sealed. A promise where the schema or the codec takes its time; what becomes of
 * the caller's object meanwhile changes nothing. A schema sees what JSON carries: a `Date` is a text for whoever reads the record.
 *
 * @throws DuestreamError `bad-input`, or whatever the codec throws; the promise rejects with the same
 */
export function seal(content: Content, job: { readonly name?: string | undefined; readonly data: unknown }): unknown {
  const { name = DEFAULT_NAME } = job;
  const schema = content.jobs && schemaOf(content.jobs, content.name, name);
  const text = dataText(job.data);
  if (!schema) return encoded(content, text);
  const result = schema['~standard'].validate(text && JSON.parse(text.json));
  const judge = (known: SchemaResult<unknown>): unknown => {
    if (known.issues === undefined) return encoded(content, text);
    const allowed = `what the schema of ${name} takes`;
    throw new DuestreamError(
      'bad-input',
      `data of ${name} in queue ${content.name} does not fit: ${issuesText(known.issues, false)}; allowed: ${allowed}`,
    );
  };
  return isPromise(result) ? result.then(judge) : judge(result);
}

function schemaOf(jobs: JobSchemas, queue: string, name: string): StandardSchema<unknown> {
  const schema = Object.hasOwn(jobs, name) ? jobs[name] : undefined;
  if (schema) return schema;
  const names = Object.keys(jobs);
  throw new DuestreamError(
    'bad-input',
    `queue ${queue} has no jobs named ${name}${hintOf(name, names) || ';'} allowed: ${names.join(', ')}`,
  );
}

function encoded({ name, codec }: Content, data: DataText | undefined): unknown {
  if (!codec || data === undefined) return data;
  const text = codec.encode(data.json, { queue: name });
  const sealed = (known: unknown) => {
    if (typeof known === 'string') return new Sealed(known, codec.name ?? DEFAULT_CODEC);
    throw new DuestreamError(
      'bad-input',
      `encode of the codec of queue ${name} gave ${show(known)}; allowed: a text, bytes as base64`,
    );
  };
  return isPromise(text) ? text.then(sealed) : sealed(text);
}

/** What a record says about its data. */
interface Stored {
  readonly name: string;
  readonly data: unknown;
  readonly codec?: string | undefined;
}

/**
 * Data as a handler gets it. A compensation job has data of its own shape, and in it the data of the job that died: that
 * is decoded, and not checked, since whatever it holds was refused or accepted before.
 *
 * @throws BadData, or the `Defer` of a codec; the promise rejects with the same
 */
export function open(content: Content, record: Stored): unknown {
  const { name, data, codec } = record;
  if (name === ABANDONED) {
    const told = data as { readonly data: unknown };
    const inner = decoded(content, told.data, codec);
    return isPromise(inner) ? inner.then((known) => ({ ...told, data: known })) : { ...told, data: inner };
  }
  const plain = decoded(content, data, codec);
  return isPromise(plain) ? plain.then((known) => checked(content, name, known)) : checked(content, name, plain);
}

function decoded({ name: queue, codec }: Content, data: unknown, used: string | undefined): unknown {
  if (used === undefined) return data;
  if (!codec || codec.name !== used || typeof data !== 'string') {
    const has = codec ? `the codec ${codec.name}` : 'no codec';
    throw new BadData(`data is encoded by the codec ${used}, and queue ${queue} has ${has} here`);
  }
  const failed = (thrown: unknown): never => {
    if (thrown instanceof Defer) throw thrown;
    throw new BadData(oneLine(`the codec ${used} cannot decode the data: ${reasonOf(thrown)}`));
  };
  try {
    const text = codec.decode(data, { queue });
    return isPromise(text) ? text.then(parsed).catch(failed) : parsed(text);
  } catch (thrown) {
    return failed(thrown);
  }
}

/** The parser's own message would show what was decoded. */
function parsed(text: unknown): unknown {
  try {
    if (typeof text === 'string') return parseBounded(text, 'the data');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Error(`decode gave ${typeof text === 'string' ? 'a text that is not JSON' : show(text)}`);
}

function checked({ name: queue, jobs, codec }: Content, name: string, data: unknown): unknown {
  if (!jobs) return data;
  const judge = (known: SchemaResult<unknown>): unknown => {
    if (known.issues === undefined) return known.value;
    throw new BadData(oneLine(`data of ${name} does not fit: ${issuesText(known.issues, codec !== undefined)}`));
  };
  const failed = (thrown: unknown): never => {
    if (thrown instanceof BadData || thrown instanceof Defer) throw thrown;
    throw new BadData(codec ? 'its schema threw' : reasonOf(thrown));
  };
  try {
    const result = schemaOf(jobs, queue, name)['~standard'].validate(data);
    return isPromise(result) ? result.then(judge).catch(failed) : judge(result);
  } catch (thrown) {
    return failed(thrown);
  }
}

// The interface that schema libraries share (standardschema.dev, version 1): zod, valibot, arktype and others have it,
// and anybody can write one. Its types are repeated here, so that nothing has to be installed for it.

/** What checks data: a schema of zod, valibot or arktype, or an object of your own with the key `~standard`. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Checks data, now or later. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Never read: the compiler takes the types from here. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema says of data: what it made of it, or what is wrong with it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One thing that is wrong with data, and its place in it. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

function isSchema(value: unknown): value is StandardSchema {
  const holder = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!holder || !('~standard' in value)) return false;
  const { '~standard': standard } = value;
  return typeof standard === 'object' && standard !== null && 'validate' in standard;
}

/** @throws DuestreamError `bad-input` */
function parseSchema(value: unknown, what: string): StandardSchema {
  if (isSchema(value)) return value;
  const allowed = 'a Standard Schema: of zod, valibot, arktype, or an object with the key ~standard';
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: ${allowed}`);
}

const ISSUES_SHOWN = 3;

/**
 * What is wrong with data, on one line.
 *
 * @param secret only the places: messages of some libraries hold the values
 */
function issuesText(issues: readonly SchemaIssue[], secret: boolean): string {
  const shown = issues.slice(0, ISSUES_SHOWN).map(({ message, path = [] }) => {
    const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    if (secret) return place === '' ? 'the data itself' : place;
    return place === '' ? message : `${place}: ${message}`;
  });
  const more = issues.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
