/**
 * Virtual time. One queue of events, each belonging to a process; an event runs alone, with all promises and ticks it
 * causes, before the next one. A process can stand still (its events wait) or be dead (its events vanish). The same
 * seed makes the same run, because nothing happens that is not an event of this queue.
 */

/** @typedef {{ name: string, pid: number, pausedUntilUs: number, busyUntilUs: number, dead: boolean }} Process */
/** @typedef {{ atUs: number, order: number, of: Process, act: (() => void) | undefined }} Event */
/** @typedef {ReturnType<typeof createTime>} Time */

const realImmediate = setImmediate;

/** @param {{ random: () => number }} by */
export function createTime({ random }) {
  /** @type {Event[]} a heap, the soonest first */
  const heap = [];
  let nowUs = 0;
  let order = 0;
  let born = 0;
  let events = 0;
  /** @type {Process} */
  const nobody = { name: 'nobody', pid: 0, pausedUntilUs: 0, busyUntilUs: 0, dead: false };
  let current = nobody;

  /** @param {Event} event */
  function push(event) {
    heap.push(event);
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!swapped(parent, at)) return;
      at = parent;
    }
  }

  /** Puts the sooner one first. @param {number} parent @param {number} child */
  function swapped(parent, child) {
    const [a, b] = [heap[parent], heap[child]];
    if (!a || !b || !isSooner(b, a)) return false;
    heap[parent] = b;
    heap[child] = a;
    return true;
  }

  function pop() {
    const [first, last] = [heap[0], heap.pop()];
    if (!last || heap.length === 0) return;
    if (first !== last) heap[0] = last;
    for (let at = 0, child = soonerChild(0); swapped(at, child); at = child, child = soonerChild(at));
  }

  /** @param {number} at */
  function soonerChild(at) {
    const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
    return 2 * at + (left && right && isSooner(right, left) ? 2 : 1);
  }

  /**
   * @param {Process} of
   * @param {number} afterUs
   * @param {() => void} act
   * @param {number} [place] among the events of the same moment; the last one unless said
   */
  function schedule(of, afterUs, act, place = ++order) {
    /** @type {Event} */
    const event = { atUs: nowUs + Math.max(0, Math.round(afterUs)), order: place, of, act };
    push(event);
    return event;
  }

  /** @param {Event} event */
  async function happen(event) {
    const { of, act } = event;
    if (!act || of.dead) return;
    const freeUs = Math.max(of.pausedUntilUs, of.busyUntilUs);
    if (freeUs > event.atUs) {
      event.atUs = freeUs;
      push(event);
      return;
    }
    nowUs = Math.max(nowUs, event.atUs);
    event.act = undefined;
    current = of;
    events += 1;
    act();
    await new Promise((done) => realImmediate(done));
    current = nobody;
    of.busyUntilUs = nowUs + 5 + Math.floor(random() * 40);
  }

  return {
    nowUs: () => nowUs,
    events: () => events,
    current: () => current,
    schedule,
    /** @param {string} name @returns {Process} */
    process(name) {
      born += 1;
      return { name, pid: born, pausedUntilUs: 0, busyUntilUs: 0, dead: false };
    },
    /** Until this moment, or until it is over. @param {number} untilUs @param {() => boolean} [over] */
    async run(untilUs, over = () => false) {
      while (!over()) {
        const next = heap[0];
        if (!next || next.atUs > untilUs) {
          nowUs = Math.max(nowUs, untilUs);
          return;
        }
        pop();
        await happen(next);
      }
    },
  };
}

/** @param {Event} one @param {Event} other */
const isSooner = (one, other) => one.atUs < other.atUs || (one.atUs === other.atUs && one.order < other.order);
