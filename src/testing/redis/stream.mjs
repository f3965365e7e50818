/** A stream with its consumer groups, as Redis 7.0 keeps them. An id is written `ms-seq` and compared by both numbers. */
import { Refusal } from './replies.mjs';

/** @typedef {readonly [ms: number, seq: number]} Id */
/** @typedef {{ id: string, key: Id, fields: string[] }} Entry */
/** @typedef {{ consumer: string, atMs: number, count: number }} Pending */
/** @typedef {{ last: Id, read: number, pending: Map<string, Pending>, consumers: Map<string, number> }} Group consumers: name → seen, ms */

export class Stream {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Id} */
    this.last = [0, 0];
    this.added = 0;
    /** @type {Map<string, Group>} */
    this.groups = new Map();
  }

  /** @param {string} wanted `*` or an id @param {string[]} fields @param {number} nowMs */
  add(wanted, fields, nowMs) {
    const [ms, seq] = this.last;
    /** @type {Id} */
    const next = nowMs > ms ? [nowMs, 0] : [ms, seq + 1];
    const key = wanted === '*' ? next : idOf(wanted);
    if (compare(key, [0, 0]) === 0) throw new Refusal('ERR The ID specified in XADD must be greater than 0-0');
    if (compare(key, this.last) <= 0) {
      throw new Refusal('ERR The ID specified in XADD is equal or smaller than the target stream top item');
    }
    this.entries.push({ id: nameOf(key), key, fields });
    this.last = key;
    this.added += 1;
    return nameOf(key);
  }

  /** @param {string} id */
  remove(id) {
    const at = this.#placeOf(idOf(id));
    if (this.entries[at]?.id !== id) return false;
    this.entries.splice(at, 1);
    return true;
  }

  /** @param {string} id */
  find(id) {
    const found = this.entries[this.#placeOf(idOf(id))];
    return found?.id === id ? found : undefined;
  }

  /** @param {Id} from @param {Id} to both included */
  between(from, to) {
    const first = this.#placeOf(from);
    let end = this.#placeOf(to);
    const last = this.entries[end];
    if (last && compare(last.key, to) === 0) end += 1;
    return this.entries.slice(first, end);
  }

  /** What comes after an id. @param {Id} id @param {number} most */
  after([ms, seq], most) {
    const first = this.#placeOf([ms, seq + 1]);
    return this.entries.slice(first, first + most);
  }

  copy() {
    const made = new Stream();
    Object.assign(made, { entries: [...this.entries], last: this.last, added: this.added });
    for (const [name, group] of this.groups) {
      const pending = new Map([...group.pending].map(([id, one]) => [id, { ...one }]));
      made.groups.set(name, { ...group, pending, consumers: new Map(group.consumers) });
    }
    return made;
  }

  /** @param {Id} key */
  #placeOf(key) {
    let [low, high] = [0, this.entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const one = this.entries[middle];
      if (one && compare(one.key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** @param {Id} a @param {Id} b */
export const compare = (a, b) => a[0] - b[0] || a[1] - b[1];

/** @param {Id} id */
export const nameOf = ([ms, seq]) => `${ms}-${seq}`;

/** @param {string} text @param {number} [seq] where it is left out @returns {Id} */
export function idOf(text, seq = 0) {
  const found = /^(\d+)(?:-(\d+))?$/.exec(text);
  if (!found) throw new Refusal('ERR Invalid stream ID specified as stream command argument');
  return [Number(found[1]), found[2] === undefined ? seq : Number(found[2])];
}

/** @param {string} text an end of a range @param {'from' | 'to'} side @returns {Id} */
export function edgeOf(text, side) {
  if (text === '-') return [0, 0];
  if (text === '+') return [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  const missing = side === 'from' ? 0 : Number.MAX_SAFE_INTEGER;
  if (!text.startsWith('(')) return idOf(text, missing);
  const [ms, seq] = idOf(text.slice(1), missing);
  if (side === 'from') return [ms, seq + 1];
  return seq > 0 ? [ms, seq - 1] : [ms - 1, Number.MAX_SAFE_INTEGER];
}

/** Entries that are held, by their ids. @param {Group} group */
export function held(group) {
  return [...group.pending].map(([id, one]) => ({ id, key: idOf(id), ...one })).sort((a, b) => compare(a.key, b.key));
}
