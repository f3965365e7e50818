/**
 * A history as Jepsen writes it, one map per line: `{:index 4, :time 1200, :type :invoke, :process 3, :f :start, :value
 * ["job-7" {:token 5}]}`. A call is an `:invoke` and, by the same process, an `:ok`, a `:fail` (it did not happen) or an
 * `:info` (nobody knows). A value that is a pair with a text in front is about one of many objects, as with
 * `jepsen.independent`: each object is judged alone.
 */
import { ednOf, readEdn } from './edn.mjs';
import { linearize } from './linearize.mjs';
import { models } from './models.mjs';

/** @typedef {import('./linearize.mjs').Operation} Operation */
/**
 * @typedef {object} Line
 * @property {'invoke' | 'ok' | 'fail' | 'info'} type
 * @property {string} f
 * @property {unknown} value
 * @property {unknown} process
 * @property {number} [time] nanoseconds
 */
/** @typedef {{ readonly key: string, readonly stuck: Operation }} Flaw the object, and the call that could not be placed */
/** @typedef {{ readonly objects: number, readonly operations: number, readonly flaws: readonly Flaw[] }} Judgement */

/** @param {readonly Line[]} lines */
export function* textOf(lines) {
  for (const [index, { type, process, f, value, time }] of lines.entries()) {
    const known = time === undefined ? { index } : { index, time };
    yield `${ednOf({ ...known, type: Symbol.for(type), process, f: Symbol.for(f), value })}\n`;
  }
}

/**
 * Of a file in EDN, a map per line or all in one vector, or of one with a line of JSON for each.
 *
 * @param {string} text
 * @returns {readonly Line[]}
 */
export function readHistory(text) {
  const isJson = /^\s*\{\s*"/.test(text);
  const values = isJson
    ? text
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map((line) => JSON.parse(line))
    : readEdn(text);
  const all = values.length === 1 && Array.isArray(values[0]) ? values[0] : values;
  return all.map((value, at) => lineOf(plain(value), at));
}

/** Keywords as their names: nothing in a history tells `:ok` from "ok". @param {unknown} value @returns {unknown} */
function plain(value) {
  if (typeof value === 'symbol') return value.description;
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map || value instanceof Set) return [...value].map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, plain(of)]));
}

/** @param {unknown} value @param {number} at @returns {Line} */
function lineOf(value, at) {
  const line = /** @type {Partial<Line>} */ (typeof value === 'object' && value !== null ? value : {});
  const { type, f, process } = line;
  if (type === 'invoke' || type === 'ok' || type === 'fail' || type === 'info') {
    return { ...line, type, f: String(f), value: line.value ?? null, process };
  }
  throw new Error(`line ${at + 1} has the type ${String(type)}; allowed: invoke, ok, fail, info`);
}

/**
 * Calls with their completions, by the object that they are about; '' where there is but one.
 *
 * @param {readonly Line[]} lines
 */
export function operationsIn(lines) {
  const isKeyed = lines.every(({ type, value }) => type !== 'invoke' || keyOf(value) !== undefined);
  /** @type {Map<unknown, { operation: Operation, of: Operation[] }>} */
  const open = new Map();
  /** @type {Map<string, Operation[]>} */
  const byKey = new Map();
  for (const [at, line] of lines.entries()) {
    const { type, f, value, process } = line;
    const begun = open.get(process);
    const about = isKeyed ? wordOf(value) : value;
    if (type === 'invoke') {
      if (begun) throw new Error(`process ${String(process)} calls on line ${at + 1}, and its last call has no end`);
      const key = (isKeyed && keyOf(value)) || '';
      const of = byKey.get(key) ?? [];
      byKey.set(key, of);
      const operation = { f, value: about, from: at };
      of.push(operation);
      open.set(process, { operation, of });
    } else if (begun) {
      open.delete(process);
      complete(begun, { type, about, at });
    }
    // Whoever breaks things says so without a call.
  }
  return byKey;
}

/**
 * @param {{ operation: Operation, of: Operation[] }} begun
 * @param {{ type: 'ok' | 'fail' | 'info', about: unknown, at: number }} end
 */
function complete({ operation, of }, { type, about, at }) {
  if (type === 'fail') of.splice(of.indexOf(operation), 1);
  if (type !== 'ok') return;
  operation.to = at;
  operation.value = about ?? operation.value;
}

/** @param {unknown} value @returns {string | undefined} */
const keyOf = (value) =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' ? value[0] : undefined;

/** @param {unknown} value @returns {unknown} */
const wordOf = (value) => (Array.isArray(value) ? value[1] : value);

/**
 * @param {readonly Line[]} lines
 * @param {import('./models.mjs').ModelName} name
 * @returns {Judgement}
 */
export function judge(lines, name) {
  const byKey = operationsIn(lines);
  /** @type {Flaw[]} */
  const flaws = [];
  for (const [key, operations] of byKey) {
    const verdict = verdictOf(name, operations);
    if (!verdict.isValid) flaws.push({ key, stuck: verdict.stuck });
  }
  const operations = [...byKey.values()].reduce((total, of) => total + of.length, 0);
  return { objects: byKey.size, operations, flaws };
}

/** @param {import('./models.mjs').ModelName} name @param {readonly Operation[]} operations */
function verdictOf(name, operations) {
  if (name === 'job') return linearize(models.job, operations);
  return linearize(models[name], operations);
}
