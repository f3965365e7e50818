/**
 * A change in two calls:
 *
 *     1  without `confirm`   look ──▶ what there is, and a digest over it                       nothing is changed
 *     2  with the digest     look ──▶ the same digest? ──▶ the change ──▶ the audit             else nothing is changed
 *
 * The digest is over the tool, all that it was given, and what must be the same: of one thing its ETag, of a filter the id and the ETag of
 * each job that it means. What must always hold: nothing is changed that is not as the dry run saw it. Between the look of the
 * second call and its change somebody may be faster, so the change carries the ETag (`If-Match`), of many jobs that of each; and a filter is
 * never sent, the jobs that were seen are. A digest counts once, and only where it was told: the connection remembers those that it has told.
 */
import { hash } from 'node:crypto';
import type { DryRun } from '../http/api/verb.ts';
import type { Answered, AskApi, Given } from './api.ts';
import { isObject, objectIn } from './json.ts';
import type { Tool, Tools } from './tools.ts';

export interface ChangeParts {
  readonly tools: Tools;
  readonly ask: AskApi;
  /** Digests of dry runs that nobody has confirmed yet. */
  readonly told: Set<string>;
}

/** A call of a tool that changes something. */
export interface Changing {
  readonly tool: Tool;
  readonly dryRun: DryRun;
  readonly given: Given;
  readonly signal: AbortSignal | undefined;
}

/** What a model is told. */
export interface Outcome {
  /** In our words. */
  readonly said: string;
  /** The call that confirms it. It is told only where the data are. */
  readonly next?: string;
  readonly data: unknown;
  readonly isError: boolean;
}

/** What there is before a change. */
interface Seen {
  readonly body: unknown;
  /** What must be the same when the change is made. */
  readonly same: unknown;
  readonly etag: string | undefined;
  /** Where the look has pages: all of them. */
  readonly rows: readonly Given[];
}

/** A change whose look is known. */
interface Asking extends Pick<Changing, 'tool' | 'dryRun' | 'signal'> {
  /** Without what is ours. */
  readonly args: Given;
  readonly look: Tool;
}

/** Dry runs of one connection that wait to be confirmed; the oldest goes. */
const TOLD_MAX = 1000;
/** What one change by filter changes at most: as much as one request may name. */
const ROWS_MAX = 1000;
/** Of them, what the dry run shows: so many, and so much text. */
const ROWS_SHOWN = 50;
const CHARS_SHOWN = 50_000;

export async function change(parts: ChangeParts, { tool, dryRun, given, signal }: Changing): Promise<Outcome> {
  const { confirm, why, ...args } = given;
  const look = parts.tools.get(dryRun.look);
  if (look === undefined) throw new Error(`the look ${dryRun.look} is no tool`);
  const asking = { tool, dryRun, signal, args, look };
  if (meansAll(asking))
    return refused('Nothing was changed: the filter says nothing, so it would mean all. Name at least one field.');
  const seen = await lookBefore(parts, asking);
  if ('ok' in seen) return refused('Nothing was changed: the look before the change was refused.', seen.body);
  const digest = digestOf([tool.name, args, seen.same]);
  const isTold = typeof confirm === 'string' && parts.told.delete(confirm);
  if (!isTold || confirm !== digest) {
    remember(parts.told, digest);
    return planOf(asking, { seen, digest, isStale: confirm !== undefined });
  }
  const ifMatch = tool.verb.versioned && seen.etag;
  const done = await parts.ask(tool, requestOf(asking, seen), { signal, ifMatch, why: textIn(why) });
  if (!done.ok) return refused('The change was refused.', done.body);
  return { said: 'The change was made. What became of it:', data: done.body, isError: false };
}

const refused = (said: string, data: unknown = {}): Outcome => ({ said, data, isError: true });
const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Whoever means every dead letter says so. */
function meansAll({ dryRun: { names }, args, look }: Asking): boolean {
  if (names === undefined) return false;
  const { filter, ...body } = objectIn(args.body);
  const fields = { ...body, ...objectIn(filter) };
  return body.all !== true && look.query.every((name) => fields[name] === undefined);
}

/** What there is, or the answer that refused to say it. What is not there is a state too: a change may be about to make it. */
async function lookBefore({ ask }: ChangeParts, asking: Asking): Promise<Seen | Answered> {
  const { tool, dryRun, args, signal, look } = asking;
  if (look.query.includes('cursor')) return everyRow(ask, asking);
  const given = look === tool ? withDryRun(args, true) : givenFor(asking);
  const found = await ask(look, given, { signal });
  if (!found.ok && found.status !== 404) return found;
  const { body, etag } = found;
  return found.ok
    ? { body, same: pick(body, dryRun.same), etag, rows: [] }
    : { body: { isThere: false }, same: null, etag: undefined, rows: [] };
}

/** Page by page all that a filter means, up to a bound. */
async function everyRow(ask: AskApi, asking: Asking): Promise<Seen | Answered> {
  const { look, dryRun, signal } = asking;
  const rows: Given[] = [];
  const asked = givenFor(asking);
  let page: Given = {};
  do {
    const bounds = { limit: ROWS_MAX - rows.length, cursor: page.cursor };
    const answered = await ask(look, { ...asked, ...bounds }, { signal });
    if (!answered.ok) return answered;
    page = objectIn(answered.body);
    rows.push(...rowsIn(page));
  } while (page.cursor !== undefined && rows.length < ROWS_MAX);
  const { unread } = page;
  const body = { count: rows.length, more: page.cursor !== undefined, first: firstOf(rows), unread };
  return { body, same: rows.map((row) => pick(row, dryRun.same)), etag: undefined, rows };
}

/** As many as a model reads. */
function firstOf(rows: readonly Given[]): readonly Given[] {
  let chars = 0;
  return rows.slice(0, ROWS_SHOWN).filter((row) => {
    chars += JSON.stringify(row).length;
    return chars <= CHARS_SHOWN;
  });
}

/** A page has one list of what was found. */
const rowsIn = ({ jobs, deadLetters, tags }: Given): readonly Given[] =>
  [jobs, deadLetters, tags].flatMap((list) => (Array.isArray(list) ? list.map(objectIn) : []));

/** Of what a change is given, what a look takes. The fields of the change come before those of its body, and those before the filter in it. */
function givenFor({ look: { path, query, input }, dryRun: { defaults }, args }: Asking): Given {
  const body = objectIn(args.body);
  const all: Given = { ...defaults, ...objectIn(body.filter), ...body, ...args };
  const taken = [...path, ...query].filter((name) => !BOUNDS.includes(name) && all[name] !== undefined);
  return {
    ...Object.fromEntries(taken.map((name) => [name, all[name]])),
    ...('body' in objectIn(input.properties) && { body: args.body }),
  };
}

/** Ours, where a look has pages. */
const BOUNDS: readonly string[] = ['limit', 'cursor'];

/** The request that makes the change. In the place of a filter it names what was seen. */
function requestOf({ tool, dryRun: { names }, args, look }: Asking, { rows }: Seen): Given {
  if (look === tool) return withDryRun(args, false);
  if (names === undefined) return args;
  const filters = ['filter', 'all', ...look.query];
  const kept = Object.entries(objectIn(args.body)).filter(([name]) => !filters.includes(name));
  const seen = rows.map((row) => (names === 'ids' ? { id: row.id, ifMatch: row.etag } : row.deadLetter));
  return { ...args, body: { ...Object.fromEntries(kept), [names]: seen } };
}

const withDryRun = (args: Given, dryRun: boolean): Given => ({ ...args, body: { ...objectIn(args.body), dryRun } });

function planOf(
  { tool, args }: Asking,
  { seen: { body }, digest, isStale }: { readonly seen: Seen; readonly digest: string; readonly isStale: boolean },
): Outcome {
  const stale =
    'Nothing was changed: this digest is not of what would be changed now. It was changed meanwhile, the call says something else than its dry run, or the digest was used.';
  const next = `To make the change, call ${tool.name} again with the same arguments and confirm ${digest}.`;
  const said = isStale
    ? `${stale} Look at what there is now before you decide.`
    : 'A dry run: nothing was changed. Below is what is there now.';
  return { said, next, data: { change: tool.verb.name, asked: args, now: body }, isError: isStale };
}

function remember(told: Set<string>, digest: string): void {
  const [oldest] = told.size >= TOLD_MAX ? told : [];
  if (oldest !== undefined) told.delete(oldest);
  told.add(digest);
}

const digestOf = (value: unknown): string => hash('sha256', JSON.stringify(sorted(value))).slice(0, 32);

/** A model may name the same fields in another order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field)]));
}

/** These fields, at whatever depth they stand. */
function pick(value: unknown, names: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => pick(one, names));
  if (!isObject(value)) return undefined;
  const picked = Object.entries(value).map(([name, field]) => [
    name,
    names.includes(name) ? field : pick(field, names),
  ]);
  return Object.fromEntries(picked.filter(([, field]) => field !== undefined));
}
