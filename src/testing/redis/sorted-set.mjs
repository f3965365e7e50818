/** A sorted set: members by score, and by their bytes where scores are equal. */
import { general } from '../lua/numbers.mjs';
import { Refusal } from './replies.mjs';

/** @typedef {{ member: string, score: number }} Scored */
/** @typedef {{ value: number, open: boolean }} Bound */

export class SortedSet {
  constructor() {
    /** @type {Map<string, number>} */
    this.scores = new Map();
    /** @type {Scored[]} */
    this.sorted = [];
  }

  /** @param {string} member @param {number} score @returns {boolean} whether it is new */
  add(member, score) {
    const before = this.scores.get(member);
    if (before === score) return false;
    if (before !== undefined) this.remove(member);
    this.scores.set(member, score);
    this.sorted.splice(this.#placeOf(member, score), 0, { member, score });
    return before === undefined;
  }

  /** @param {string} member */
  remove(member) {
    const score = this.scores.get(member);
    if (score === undefined) return false;
    this.scores.delete(member);
    this.sorted.splice(this.#placeOf(member, score), 1);
    return true;
  }

  /** @param {Bound} from @param {Bound} to @returns {readonly Scored[]} */
  between(from, to) {
    const first = this.#firstThat(({ score }) => (from.open ? score > from.value : score >= from.value));
    const end = this.#firstThat(({ score }) => (to.open ? score >= to.value : score > to.value));
    return this.sorted.slice(first, end);
  }

  /**
   * By bytes, where all have one score.
   *
   * @param {(member: string) => boolean} isIn the first one and all behind it
   * @param {(member: string) => boolean} isBehind
   */
  lexBetween(isIn, isBehind) {
    const first = this.#firstThat(({ member }) => isIn(member));
    return this.sorted.slice(
      first,
      this.#firstThat(({ member }) => isBehind(member)),
    );
  }

  /** The place of the first one; it holds for all behind that as well. @param {(one: Scored) => boolean} holds */
  #firstThat(holds) {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const one = this.sorted[middle];
      if (one && !holds(one)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  copy() {
    const made = new SortedSet();
    made.scores = new Map(this.scores);
    made.sorted = [...this.sorted];
    return made;
  }

  /** The first place that is not before this one. @param {string} member @param {number} score */
  #placeOf(member, score) {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const one = this.sorted[middle];
      if (one && (one.score < score || (one.score === score && one.member < member))) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** @param {number} score */
export const printed = (score) => general(score, 17);

/** @param {string} text @param {string} [what] it is, for a refusal @returns {number} */
export function scoreOf(text, what = 'value is not a valid float') {
  const named = /^([+-]?)inf(inity)?$/i.exec(text);
  if (named) return named[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  throw new Refusal(`ERR ${what}`);
}

/** @param {string} text @returns {Bound} */
export function boundOf(text) {
  const open = text.startsWith('(');
  return { value: scoreOf(open ? text.slice(1) : text, 'min or max is not a float'), open };
}
