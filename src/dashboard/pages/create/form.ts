/** What somebody types about a job → the body of the request that makes it, and the same as a command, as TypeScript and for curl. */
import { quoted } from '../../parts/shell.ts';
import { changeText } from '../../parts/words.ts';

/** All as typed. Empty: as the queue has it. */
export interface Form {
  readonly queue: string;
  readonly name: string;
  readonly when: 'now' | 'delay' | 'at';
  readonly delay: string;
  /** A local time of the zone: `2026-11-27T09:00`. */
  readonly at: string;
  readonly zone: string;
  readonly data: string;
  readonly id: string;
  readonly tags: string;
  readonly group: string;
  readonly priority: string;
  readonly cost: string;
  /** A path, a URL, or an object in JSON. */
  readonly target: string;
  readonly attempts: string;
  readonly timeout: string;
  readonly maxLateness: string;
  readonly onLate: string;
}

export const EMPTY: Form = {
  ...{ queue: '', name: '', when: 'now', delay: '', at: '', zone: '', data: '', id: '', tags: '' },
  ...{ group: '', priority: '', cost: '', target: '', attempts: '', timeout: '', maxLateness: '', onLate: '' },
};

/** What of a form has a field of the same name in the body. */
const TEXTS = ['name', 'id', 'group', 'priority', 'timeout', 'maxLateness', 'onLate'] as const;

/** The same of numbers. */
const COUNTS = ['cost', 'attempts'] as const;

/** The options of the job, without its data. */
export function optionsOf(form: Form): Readonly<Record<string, unknown>> {
  const { when, delay, at, zone, tags, target } = form;
  const words = tags.split(/\s+/).filter((tag) => tag !== '');
  return {
    ...Object.fromEntries(TEXTS.flatMap((name) => (form[name].trim() === '' ? [] : [[name, form[name].trim()]]))),
    ...(when === 'delay' && delay.trim() !== '' ? { delay: delay.trim() } : {}),
    ...(when === 'at' && at !== '' ? { at, zone } : {}),
    ...(words.length === 0 ? {} : { tags: words }),
    ...(target.trim() === '' ? {} : { target: targetOf(target.trim()) }),
    // The daemon says what is allowed, also of what is no number.
    ...Object.fromEntries(
      COUNTS.flatMap((name) => (form[name].trim() === '' ? [] : [[name, Number(form[name].trim())]])),
    ),
  };
}

/** What is no object is said as it was typed: the daemon says what is allowed. */
function targetOf(text: string): unknown {
  try {
    return text.startsWith('{') ? JSON.parse(text) : text;
  } catch {
    return text;
  }
}

/** @throws Error in words for data that are no JSON */
export const bodyOf = (form: Form): string =>
  changeText(optionsOf(form), form.data.trim() === '' ? undefined : form.data.trim());

/** Whether what is asked for has a due time. */
export const hasDue = ({ when, delay, at }: Form): boolean =>
  when === 'now' || (when === 'delay' ? delay.trim() !== '' : at !== '');

// The same for a terminal and for a program.

const FLAGS: Readonly<Record<string, string>> = {
  name: 'name',
  id: 'id',
  at: 'at',
  zone: 'zone',
  delay: 'delay',
  group: 'group',
  priority: 'priority',
  cost: 'cost',
  target: 'target',
  attempts: 'attempts',
  timeout: 'timeout',
  maxLateness: 'max-lateness',
  onLate: 'on-late',
};

/** @example commandOf({ ...EMPTY, queue: 'emails', when: 'delay', delay: '2h' }) // duestream schedule emails --delay 2h */
export function commandOf(form: Form): string {
  const { tags, ...options } = optionsOf(form) as { readonly tags?: readonly string[] } & Record<string, unknown>;
  const flags = Object.entries(FLAGS).flatMap(([name, flag]) =>
    options[name] === undefined ? [] : [`--${flag} ${quoted(flagText(options[name]))}`],
  );
  const data = form.data.trim() === '' ? [] : [`--data ${quoted(oneLine(form.data))}`];
  const each = (tags ?? []).map((tag) => `--tag ${quoted(tag)}`);
  return [`duestream schedule ${quoted(form.queue)}`, ...flags, ...each, ...data].join(' \\\n  ');
}

const flagText = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

export function curlOf(form: Form, url: string): string {
  const body = `{${[dataField(form), inner(optionsOf(form))].filter((part) => part !== '').join(',')}}`;
  return [
    `curl -X POST ${quoted(url)}`,
    `-H 'Content-Type: application/json'`,
    `-H "Authorization: Bearer $TOKEN"`,
    `-d ${quoted(body)}`,
  ].join(' \\\n  ');
}

const dataField = ({ data }: Form): string => (data.trim() === '' ? '' : `"data":${oneLine(data)}`);
const inner = (options: object): string => JSON.stringify(options).slice(1, -1);

export function programOf(form: Form): string {
  const options = optionsOf(form);
  const data = form.data.trim() === '' ? 'null' : form.data.trim();
  const names = Object.entries(options).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  const rest = names.length === 0 ? '' : `, {\n${names.join('\n')}\n}`;
  return `await client.schedule(${JSON.stringify(form.queue)}, ${data}${rest});`;
}

/** JSON on one line; what is none stays as it was typed. */
function oneLine(data: string): string {
  try {
    JSON.parse(data);
  } catch {
    return data.trim();
  }
  // Its digits stay as they were typed: only white space between the parts goes.
  return data.trim().replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

// How late the rate of a queue makes a job, with what comes due before it.

interface Beside {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly counts: readonly number[];
}

export interface Drain {
  /** By so much the last of its minute starts late. */
  readonly lateMs: number;
  /** The next minute at whose beginning nobody is left in line; undefined: none in sight. */
  readonly freeMs: number | undefined;
}

/** @param waiting jobs that stand in line now; they count where the job is due soon */
export function drainOf(
  { fromMs, stepMs, counts }: Beside,
  {
    perSecond,
    dueMs,
    nowMs,
    waiting,
  }: { readonly perSecond: number; readonly dueMs: number; readonly nowMs: number; readonly waiting: number },
): Drain | undefined {
  const room = (perSecond * stepMs) / 1000;
  let left = nowMs >= fromMs ? waiting : 0;
  let lateMs: number | undefined;
  for (const [nth, count] of counts.entries()) {
    const atMs = fromMs + nth * stepMs;
    const isPast = atMs + stepMs <= nowMs;
    if (lateMs !== undefined && left === 0) return { lateMs, freeMs: atMs };
    if (isPast) continue;
    const all = left + count;
    if (dueMs >= atMs && dueMs < atMs + stepMs) lateMs = Math.round(Math.max(0, all - room) / perSecond) * 1000;
    left = Math.max(0, all - room);
    if (lateMs === 0) return undefined;
  }
  return lateMs === undefined ? undefined : { lateMs, freeMs: undefined };
}

export type Change = (change: Partial<Form>) => void;

/** A form, and what changes it. */
export interface Filled {
  readonly form: Form;
  readonly set: Change;
}
