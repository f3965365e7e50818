/**
 * What a history is judged by. `register` and `cas-register` are those that every checker has; `job` is one job of
 * duestream, as `docs/guarantees.md` promises it:
 *
 *     none ──schedule──▶ waits ──start t──▶ runs t ──start u > t──▶ runs u ──settle u──▶ done, dead, or waits again
 *
 * A job may start many times, each time with a larger token, and only the newest one ends it. What is over does not start.
 */

/** @typedef {import('./linearize.mjs').Operation} Operation */
/**
 * @template S
 * @typedef {import('./linearize.mjs').Model<S>} Model
 */

const isSame = (/** @type {unknown} */ one, /** @type {unknown} */ other) =>
  JSON.stringify(one) === JSON.stringify(other);

/** @type {Model<{ readonly value: unknown }>} */
export const register = {
  first: { value: null },
  step(state, { f, value, to }) {
    if (f === 'write') return { value };
    if (f === 'read') return to === undefined || isSame(value, state.value) ? state : undefined;
    throw new Error(`${f} is nothing that a register does; allowed: read, write, and cas of a cas-register`);
  },
};

/** @type {Model<{ readonly value: unknown }>} */
export const casRegister = {
  first: register.first,
  step(state, operation) {
    if (operation.f !== 'cas') return register.step(state, operation);
    const [expected, value] = Array.isArray(operation.value) ? operation.value : [];
    return isSame(expected, state.value) ? { value } : undefined;
  },
};

/**
 * @typedef {object} Life
 * @property {'none' | 'waits' | 'runs' | 'done' | 'dead' | 'cancelled' | 'expired'} place
 * @property {number} token of its last start
 * @property {boolean} isDue
 * @property {number} effect the newest token under which there was an effect
 */
/** @typedef {{ readonly due?: number | null, readonly token?: number, readonly end?: string, readonly place?: string }} Word */

const OVER = ['done', 'dead', 'cancelled', 'expired'];

/** What each call does to a job, where it can have happened. @type {Readonly<Record<string, (life: Life, word: Word) => Life | undefined>>} */
const CALLS = {
  // The same call again is answered, and changes nothing.
  schedule: (life, { due }) =>
    life.place === 'none' ? { ...life, place: 'waits', isDue: life.isDue || typeof due !== 'number' } : life,
  // The clock says so.
  due: (life) => ({ ...life, isDue: true }),
  // A foreign producer put its member, perhaps again: that is a new life.
  put: (life) => (life.place === 'waits' || life.place === 'runs' ? life : { ...life, place: 'waits', isDue: true }),
  start(life, { token = 0 }) {
    const isAllowed = life.isDue && token > life.token && (life.place === 'waits' || life.place === 'runs');
    return isAllowed ? { ...life, place: 'runs', token } : undefined;
  },
  // An old start may have its effect late; no start has one twice, and nobody has one without a start.
  effect: (life, { token = 0 }) =>
    token > life.token || token === life.effect ? undefined : { ...life, effect: Math.max(life.effect, token) },
  // Whoever was overtaken is refused, and nothing changes.
  settle(life, { token = 0, end = '' }) {
    if (life.place !== 'runs' || life.token !== token) return life;
    if (end !== 'done' && end !== 'dead' && end !== 'waits')
      throw new Error(`a handler ends as done, dead or waits, and not as ${end}`);
    return { ...life, place: end };
  },
  cancel: (life) => (life.place === 'waits' || life.place === 'runs' ? { ...life, place: 'cancelled' } : life),
  expire: (life) => (life.place === 'waits' || life.place === 'runs' ? { ...life, place: 'expired' } : life),
  // What was found in the end: a tombstone names the token of the start that counted.
  look(life, { place = '', token = 0 }) {
    if (place === 'live') return life.place === 'waits' || life.place === 'runs' ? life : undefined;
    if (place === 'gone') return life.place === 'none' || OVER.includes(life.place) ? life : undefined;
    return life.place === place && life.token === token ? life : undefined;
  },
};

/** @type {Model<Life>} */
export const job = {
  first: { place: 'none', token: 0, isDue: false, effect: 0 },
  step(life, { f, value }) {
    const call = CALLS[f];
    if (!call) throw new Error(`${f} is nothing that becomes of a job; allowed: ${Object.keys(CALLS).join(', ')}`);
    return call(life, typeof value === 'object' && value !== null ? value : {});
  },
};

export const models = { register, 'cas-register': casRegister, job };
/** @typedef {keyof typeof models} ModelName */
