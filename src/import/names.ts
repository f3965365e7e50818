/**
 * Names and ids of another product → names and ids that duestream takes. One that fits stays as it is. Another one is made to fit,
 * always in the same way, so that a second import finds what the first one made; a person can say a better one in a file.
 */
import { createHash } from 'node:crypto';
import { DEFAULT_NAME, parseJobId, parseJobName, parseName } from '../job/job.ts';
import { noOption } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { parseScheduleName } from '../schedule/schedule.ts';

/** What a person says of names: the name there, and the name here. */
export interface NameMap {
  readonly queues: ReadonlyMap<string, string>;
  readonly jobs: ReadonlyMap<string, string>;
}

export const NO_MAP: NameMap = { queues: new Map(), jobs: new Map() };

const KINDS = ['queues', 'jobs'] as const;
const FORM = '{"queues":{"paymentReminders":"payments"},"jobs":{"send welcome":"welcome"}}';

/**
 * The file of `--map`, as it was read from JSON.
 *
 * @throws DuestreamError `bad-input`
 * @example readNameMap({ queues: { paymentReminders: 'payments' } })
 */
export function readNameMap(value: unknown): NameMap {
  if (!isObject(value)) throw new DuestreamError('bad-input', `map is ${show(value)}; allowed: ${FORM}`);
  const unknown = Object.keys(value).find((key) => !KINDS.some((kind) => kind === key));
  if (unknown !== undefined) throw noOption(unknown, KINDS, 'map', 'bad-input');
  const pairs = (kind: (typeof KINDS)[number], check: (name: string) => string) => {
    const given = value[kind] ?? {};
    if (!isObject(given)) throw new DuestreamError('bad-input', `${kind} of map is ${show(given)}; allowed: ${FORM}`);
    return new Map(Object.entries(given).map(([from, to]) => [from, check(textIn(to, `${kind} of map, ${from}`))]));
  };
  return { queues: pairs('queues', (name) => parseName(name, 'queue')), jobs: pairs('jobs', parseJobName) };
}

/**
 * A queue with capitals, colons or spaces has a name in small letters here.
 *
 * @throws DuestreamError `bad-input` where nothing is left of it
 * @example queueName('paymentReminders', NO_MAP) // 'payment-reminders'
 * @example queueName('mail:welcome', NO_MAP) // 'mail.welcome'
 */
export function queueName(name: string, { queues }: Pick<NameMap, 'queues'>): string {
  const said = queues.get(name);
  if (said !== undefined) return said;
  const made = name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[:/]+/g, '.')
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|[._-]+$/g, '')
    .slice(0, NAME_CHARS_MAX);
  if (made !== '') return made;
  throw new DuestreamError(
    'bad-input',
    `queue ${show(name)} has no name here; allowed: one that a file says, --map names.json with ${FORM}`,
  );
}

/** The name of a job, which picks its handler. @example jobName('send welcome', NO_MAP) // 'send-welcome' */
export function jobName(name: string, { jobs }: Pick<NameMap, 'jobs'>): string {
  const said = jobs.get(name);
  if (said !== undefined) return said;
  return fitting(name, parseJobName) ?? (plain(name).slice(0, NAME_CHARS_MAX) || DEFAULT_NAME);
}

/** An id with spaces, with braces or of other letters is a digest here. */
export function jobId(id: string, product: string): string {
  const taken = id.includes('{') ? undefined : fitting(id, parseJobId);
  return taken ?? `${product}:${digest(id)}`;
}

/**
 * The name of a schedule, which is one of the whole namespace: with its queue.
 *
 * @example scheduleName('reports', 'every night') // 'reports:every-night-3f1c2a'
 */
export function scheduleName(queue: string, id: string): string {
  const whole = `${queue}:${id}`;
  const taken = fitting(whole, parseScheduleName);
  if (taken !== undefined) return taken;
  const end = `-${digest(id).slice(0, 6)}`;
  return `${`${queue}:${plain(id)}`.slice(0, NAME_CHARS_MAX - end.length)}${end}`;
}

const NAME_CHARS_MAX = 64;

const plain = (name: string): string => name.replace(/[^A-Za-z0-9._:-]+/g, '-').replace(/^[._:-]+|-+$/g, '');
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** The name if it may stay as it is. */
function fitting(name: string, check: (name: string) => string): string | undefined {
  try {
    return check(name);
  } catch {
    return undefined;
  }
}

function textIn(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: a name`);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
