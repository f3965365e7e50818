/** Numbers about a story, for people: they are reported and judge nothing. */
import { excusedIn, forgottenIn } from './loss.mjs';

/** @param {import('./checker.mjs').Seen} seen */
export function countsOf({ story, starts, members }) {
  const only = (/** @type {string} */ what) => new Set(story.calls.filter(({ ev }) => ev === what).map(({ id }) => id));
  const ok = only('enq.ok');
  const open = new Set([...only('enq.unknown'), ...only('enq.fail')]);
  const all = [...starts.values()].flat();
  const again = [...starts.values()].reduce((total, of) => total + Math.max(0, of.length - 1), 0);
  const late = all.map(({ ms, shownMs = ms, due = 0 }) => shownMs - due).sort((a, b) => a - b);
  const faultUs = story.fault?.fromUs ?? Number.POSITIVE_INFINITY;
  const first = all.filter(({ attempt }) => attempt === 1);
  const latest = (/** @type {typeof all} */ of) =>
    Math.max(0, ...of.map(({ ms, shownMs = ms, due = 0 }) => shownMs - due));
  return {
    asked: only('enq.call').size,
    ok: ok.size,
    unknown: only('enq.unknown').size,
    recovered: [...open].filter((id) => !ok.has(id) && (starts.get(id ?? '')?.length ?? 0) > 0).length,
    /** Jobs that are gone within a declared loss, and starts whose end Redis forgot in it. */
    excused: excusedIn({ story, starts, members }).length,
    forgotten: forgottenIn({ story, starts, members }),
    starts: all.length,
    again,
    /** Starts besides one for every job and one for every failure. */
    duplicates: [...starts.values()].reduce((total, of) => total + Math.max(0, of.filter(isNoFailure).length - 1), 0),
    /** Dead because others took their workers with them. */
    bystanders: [...members.values()].filter(({ id, outcome }) => outcome === 'x' && isHarmless(story, id)).length,
    died: all.filter(({ finish }) => finish === undefined).length,
    lateP99Ms: late[Math.floor(late.length * 0.99)] ?? 0,
    lateMaxMs: late.at(-1) ?? 0,
    /** How late a first start was at most: before the fault, and since it began. */
    lateBeforeMs: latest(first.filter(({ us }) => us < faultUs)),
    lateSinceMs: latest(first.filter(({ us }) => us >= faultUs)),
  };
}

/** Its handler never ends its worker. @param {import('./checker.mjs').Story} story @param {string} id */
function isHarmless({ kinds }, id) {
  const kind = kinds.get(id);
  return kind !== undefined && kind !== 'poison' && kind !== 'crash';
}

/** @param {import('./starts.mjs').Start} start */
function isNoFailure({ finish }) {
  return finish?.how !== 'error' && finish?.how !== 'aborted';
}
