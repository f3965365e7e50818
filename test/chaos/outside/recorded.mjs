/**
 * What happened in a run, as a history that any checker of Jepsen's histories can read. It says what was seen from
 * outside and no more:
 *
 *  :schedule  a producer asked for a job; all tries of one call are one call, `:ok` when one of them was answered
 *  :put       somebody who is not ours put it there, and nobody knows whether Redis took it
 *  :due       the clock came to its due time
 *  :start     a handler began. Its worker asked for the job at some time of its life, and has it now
 *  :effect    what a handler did to the world
 *  :settle    a handler ended; whether that counted, only Redis knows
 *  :cancel, :expire   somebody ended it, nobody of the history knows when
 *  :look      what Redis holds of it in the end
 *
 * A clock that is wrong on purpose says nothing of due times. Of a job that was told to Redis while a loss was declared
 * there is no history.
 */

/** @typedef {import('../stage/history.mjs').Event} Event */
/** @typedef {import('../judge/checker.mjs').Member} Member */
/** @typedef {import('./history.mjs').Line} Line */
/**
 * @typedef {object} Told
 * @property {readonly Event[]} calls
 * @property {readonly Event[]} effects
 * @property {readonly Member[]} members
 * @property {ReadonlyMap<number, number>} births of workers, µs by pid
 * @property {{ readonly fromUs: number, readonly toUs: number } | undefined} loss
 * @property {boolean} isTimeTrue
 */
/** @typedef {{ f: string, word: object, fromUs: number, toUs?: number | undefined }} Call */

/** A millisecond of the wall clock, rounded down twice. */
const DUE_SLACK_US = 2000;
/** A call is on its way for a moment before Redis has it, and its end after a handler has. */
const UNDERWAY_US = 1_500_000;
/** As the second letter of a tombstone says. @type {Readonly<Record<string, string>>} */
const PLACES = { d: 'done', x: 'dead', c: 'cancelled', e: 'expired' };

/** @param {Told} told */
export function recorded(told) {
  const { calls, effects, members, loss } = told;
  const found = new Map(members.map((member) => [member.id, member]));
  const [called, ran] = [byId(calls), byId(effects)];
  const endUs = Math.max(0, ...[...calls, ...effects].map(({ us }) => us)) + 1;
  const ids = [...new Set([...called.keys(), ...ran.keys()])];
  const jobs = ids.map((id) => ({
    id,
    calls: called.get(id) ?? [],
    effects: ran.get(id) ?? [],
    member: found.get(id),
  }));
  const known = jobs.filter((one) => !isTouched([...one.calls, ...one.effects], loss));
  const all = known.flatMap((one) => callsOf(one, { ...told, endUs }).map((call) => ({ ...call, id: one.id })));
  return {
    lines: linesOf(all, ({ f, word, id }) => ({ f, value: [id, word] })),
    /** The same as a register that every checker has: a start writes its token, and the tombstone is read. */
    registers: linesOf(
      all.flatMap((call) => {
        if (call.f === 'start') return [{ ...call, f: 'write' }];
        return call.f === 'look' && 'place' in call.word && call.word.place === 'done' ? [{ ...call, f: 'read' }] : [];
      }),
      ({ f, word, id }) => ({ f, value: [id, 'token' in word ? word.token : null] }),
    ),
    leftOut: jobs.length - known.length,
  };
}

/** @param {readonly Event[]} events */
function byId(events) {
  /** @type {Map<string, Event[]>} */
  const found = new Map();
  for (const event of events) {
    if (event.id === undefined) continue;
    const of = found.get(event.id);
    if (of) of.push(event);
    else found.set(event.id, [event]);
  }
  return found;
}

/** @param {readonly Event[]} events @param {Told['loss']} loss */
function isTouched(events, loss) {
  return loss !== undefined && events.some(({ us }) => us > loss.fromUs - UNDERWAY_US && us < loss.toUs + UNDERWAY_US);
}

/** @typedef {{ id: string, calls: readonly Event[], effects: readonly Event[], member: Member | undefined }} Job */

/**
 * @param {Job} job
 * @param {Told & { endUs: number }} told
 * @returns {readonly Call[]}
 */
function callsOf({ calls, effects, member }, { births, isTimeTrue, endUs }) {
  const starts = effects.filter(({ ev }) => ev === 'start');
  const at = { f: 'look', fromUs: endUs, toUs: endUs };
  const token = Number(member?.token ?? 0);
  const place = member?.live ? 'live' : (PLACES[member?.outcome ?? ''] ?? 'gone');
  return [
    ...asked(
      calls.filter(({ actor }) => actor !== 'foreign'),
      isTimeTrue,
    ),
    ...calls
      .filter(({ actor, ev }) => actor === 'foreign' && ev === 'enq.call')
      .map(({ us }) => ({ f: 'put', word: {}, fromUs: us })),
    ...starts.map(({ us, pid, token: of }) => ({
      f: 'start',
      word: { token: Number(of) },
      fromUs: Math.min(us, births.get(pid) ?? 0),
      toUs: us,
    })),
    ...effects.flatMap(said),
    ...unseen({ place, token, starts }),
    { ...at, word: place === 'live' || place === 'gone' ? { place } : { place, token } },
  ];
}

/**
 * One call with all its tries, and the moment at which its job is due.
 *
 * @param {readonly Event[]} calls
 * @param {boolean} isTimeTrue
 * @returns {readonly Call[]}
 */
function asked(calls, isTimeTrue) {
  const first = calls.find(({ ev }) => ev === 'enq.call');
  if (!first) return [];
  const taken = calls.find(({ ev }) => ev === 'enq.ok');
  const { due, ms, us } = first;
  const schedule = { f: 'schedule', word: { due: isTimeTrue ? due : null }, fromUs: us, toUs: taken?.us };
  if (!isTimeTrue || due === undefined) return [schedule];
  const dueUs = us + (due - ms) * 1000 - DUE_SLACK_US;
  return [schedule, { f: 'due', word: {}, fromUs: dueUs, toUs: dueUs }];
}

/** After its start. @param {Event} event @returns {readonly Call[]} */
function said({ ev, how, token, us }) {
  if (ev === 'effect') return [{ f: 'effect', word: { token: Number(token) }, fromUs: us, toUs: us }];
  if (ev !== 'finish') return [];
  return [{ f: 'settle', word: { token: Number(token), end: how === 'ok' ? 'done' : 'waits' }, fromUs: us }];
}

/**
 * What the end shows and no handler saw: a worker ended under it before a handler began, or buried it without one, or
 * somebody ended the job.
 *
 * @param {{ place: string, token: number, starts: readonly Event[] }} end
 * @returns {readonly Call[]}
 */
function unseen({ place, token, starts }) {
  if (place === 'cancelled' || place === 'expired') {
    const end = { f: place === 'cancelled' ? 'cancel' : 'expire', word: {}, fromUs: 0 };
    return [end, ...hidden({ token, starts })];
  }
  if (place !== 'dead') return [];
  return [{ f: 'settle', word: { token, end: 'dead' }, fromUs: 0 }, ...hidden({ token, starts })];
}

/** @param {{ token: number, starts: readonly Event[] }} last @returns {readonly Call[]} */
function hidden({ token, starts }) {
  const isSeen = token === 0 || starts.some((start) => Number(start.token) === token);
  return isSeen ? [] : [{ f: 'start', word: { token }, fromUs: 0 }];
}

/**
 * In the order of time; at one moment invocations come first, as calls that may have overlapped. Each call is a process of
 * its own: a producer makes many at a time.
 *
 * @template {Call & { id: string }} C
 * @param {readonly C[]} calls
 * @param {(call: C) => { f: string, value: unknown }} wordsOf
 * @returns {readonly Line[]}
 */
function linesOf(calls, wordsOf) {
  const moments = calls.flatMap((call, process) => {
    const { f, value } = wordsOf(call);
    const isRead = f === 'look' || f === 'read';
    const key = Array.isArray(value) ? value[0] : '';
    const begun = {
      us: call.fromUs,
      rank: 0,
      line: { type: /** @type {const} */ ('invoke'), f, value: isRead ? [key, null] : value, process },
    };
    if (call.toUs === undefined) return [begun];
    return [begun, { us: call.toUs, rank: 1, line: { type: /** @type {const} */ ('ok'), f, value, process } }];
  });
  const sorted = moments.sort((a, b) => a.us - b.us || a.rank - b.rank);
  const beginUs = sorted.find(({ us }) => us > 0)?.us ?? 0;
  return sorted.map(({ us, line }) => ({ ...line, time: Math.max(0, us - beginUs) * 1000 }));
}
