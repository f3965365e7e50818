/** What producers were told and what handlers did → what a system kept. It knows nothing of what any system is inside. */

/** @typedef {import('../../test/chaos/stage/history.mjs').Event} Event */

/** @param {{ calls: readonly Event[], effects: readonly Event[] }} seen */
export function figuresOf({ calls, effects }) {
  const asked = new Map(
    calls.flatMap(({ ev, id = '', due = 0 }) => (ev === 'enq.call' ? [/** @type {const} */ ([id, due])] : [])),
  );
  const taken = new Set(calls.flatMap(({ ev, id = '' }) => (ev === 'enq.ok' ? [id] : [])));
  const [starts, done] = [countsOf(effects, 'start'), countsOf(effects, 'effect')];
  const begun = effects.filter(({ ev }) => ev === 'start');
  const lateness = ({ id = '', ms = 0 }) => ms - (asked.get(id) ?? ms);
  // The first start of a job comes last, and so it stays.
  const firsts = new Map(begun.toReversed().map((event) => [event.id, event]));
  return {
    asked: asked.size,
    taken: taken.size,
    done: done.size,
    /** Its producer was told that it is there, and it never had an effect. */
    lost: [...taken].filter((id) => !done.has(id)).length,
    again: [...starts.values()].reduce((total, count) => total + count - 1, 0),
    twice: [...done.values()].filter((count) => count > 1).length,
    early: begun.filter((event) => lateness(event) < 0).length,
    unasked: [...starts.keys()].filter((id) => !asked.has(id)).length,
    lateMaxMs: Math.max(0, ...[...firsts.values()].map(lateness)),
  };
}

/** How often by id. @param {readonly Event[]} events @param {string} what @returns {ReadonlyMap<string, number>} */
function countsOf(events, what) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { ev, id = '' } of events) if (ev === what) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}
