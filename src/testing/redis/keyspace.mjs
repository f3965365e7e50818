/** Keys, their values and when they expire, by the clock of the server. What has expired is gone for every reader. */
import { NOT_AN_INTEGER, Refusal, WRONG_TYPE } from './replies.mjs';
import { SortedSet } from './sorted-set.mjs';
import { Stream } from './stream.mjs';

/** @typedef {string | Map<string, string> | Set<string> | SortedSet | Stream} Content */
/** @typedef {{ content: Content, expiresMs: number | undefined }} Stored */
/** @template T @typedef {new () => T} Kind */

export class Keyspace {
  /** @param {() => number} nowMs */
  constructor(nowMs) {
    this.nowMs = nowMs;
    /** @type {Map<string, Stored>} */
    this.all = new Map();
  }

  /** @param {string} key */
  at(key) {
    const stored = this.all.get(key);
    if (stored?.expiresMs === undefined || stored.expiresMs > this.nowMs()) return stored;
    this.all.delete(key);
    return undefined;
  }

  /** @template {Content} T @param {Kind<T>} kind @param {string} key @returns {T | undefined} */
  find(kind, key) {
    const content = this.at(key)?.content;
    if (content === undefined || content instanceof kind) return content;
    throw new Refusal(WRONG_TYPE);
  }

  /** Finds or makes. @template {Content} T @param {Kind<T>} kind @param {string} key @returns {T} */
  need(kind, key) {
    const found = this.find(kind, key);
    if (found) return found;
    const content = new kind();
    this.all.set(key, { content, expiresMs: undefined });
    return content;
  }

  /** @param {string} key */
  hash(key) {
    return /** @type {Map<string, string> | undefined} */ (this.find(Map, key));
  }

  /** @param {string} key */
  needHash(key) {
    return /** @type {Map<string, string>} */ (this.need(Map, key));
  }

  /** @param {string} key */
  set(key) {
    return /** @type {Set<string> | undefined} */ (this.find(Set, key));
  }

  /** @param {string} key */
  needSet(key) {
    return /** @type {Set<string>} */ (this.need(Set, key));
  }

  /** @param {string} key @returns {string | undefined} */
  text(key) {
    const content = this.at(key)?.content;
    if (content === undefined || typeof content === 'string') return content;
    throw new Refusal(WRONG_TYPE);
  }

  /** An empty hash, set or sorted set is no key; an empty stream is one. @param {string} key */
  tidy(key) {
    const content = this.all.get(key)?.content;
    const size =
      content instanceof SortedSet
        ? content.scores.size
        : content instanceof Map || content instanceof Set
          ? content.size
          : 1;
    if (size === 0) this.all.delete(key);
  }

  /** @param {string} key */
  remove(key) {
    return this.at(key) !== undefined && this.all.delete(key);
  }

  keys() {
    return [...this.all.keys()].filter((key) => this.at(key));
  }

  /** All that is stored, as it is now. */
  copy() {
    return new Map(
      [...this.all].map(([key, { content, expiresMs }]) => [key, { content: copied(content), expiresMs }]),
    );
  }
}

/** @param {Content} content @returns {Content} */
function copied(content) {
  if (content instanceof SortedSet || content instanceof Stream) return content.copy();
  if (content instanceof Map) return new Map(content);
  return content instanceof Set ? new Set(content) : content;
}

/** @param {string | undefined} text @returns {number} */
export function integer(text) {
  if (text !== undefined && /^-?\d{1,16}$/.test(text)) return Number(text);
  throw new Refusal(NOT_AN_INTEGER);
}
