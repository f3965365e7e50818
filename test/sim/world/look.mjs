/** What the model holds when all should be done, read from the wire format as documented, and the scripts that examine it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { QUEUE } from './cast.mjs';

/** @typedef {import('../../../src/testing/redis/keyspace.mjs').Keyspace} Keyspace */
/** @typedef {import('../../../src/testing/redis/replies.mjs').Reply} Reply */

/** @param {number} partition @param {string} name */
export const keyOf = (partition, name) => `duestream:v1:{${QUEUE}:${partition}}:${name}`;

/**
 * @param {(words: readonly string[]) => Reply} ask
 * @param {number} partitions
 */
export function createLook(ask, partitions) {
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const texts = (/** @type {readonly string[]} */ words) => /** @type {string[]} */ (ask(words));
  const count = (/** @type {readonly string[]} */ words) => Number(ask(words));
  const sum = (/** @type {(partition: number) => number} */ of) => all.reduce((total, one) => total + of(one), 0);

  /** @param {number} partition */
  function pendingIn(partition) {
    if (count(['EXISTS', keyOf(partition, 'ready')]) === 0) return 0;
    const [held] = /** @type {Reply[]} */ (ask(['XPENDING', keyOf(partition, 'ready'), 'workers']));
    return Number(held);
  }

  /** @param {number} partition @returns {import('../../chaos/judge/checker.mjs').Member[]} */
  function membersIn(partition) {
    const scheduled = new Set(texts(['ZRANGE', keyOf(partition, 'scheduled'), '0', '-1']));
    const entries = /** @type {[string, string[]][]} */ (ask(['XRANGE', keyOf(partition, 'ready'), '-', '+']));
    const ready = new Set(entries.map(([, fields]) => fields[1] ?? ''));
    const jobs = texts(['HGETALL', keyOf(partition, 'jobs')]);
    return jobs.flatMap((member, at) => {
      if (at % 2 === 1) return [];
      const content = jobs[at + 1] ?? '';
      const live = !content.startsWith('.');
      const over = { outcome: live ? '' : content.charAt(1), token: live ? '' : (content.split(' ')[2] ?? '') };
      return [
        {
          id: member.replace(/^j:/, ''),
          partition,
          live,
          indexed: scheduled.has(member) || ready.has(member),
          ...over,
        },
      ];
    });
  }

  const left = () => ({
    scheduled: sum((one) => count(['ZCARD', keyOf(one, 'scheduled')])),
    ready: sum((one) => count(['XLEN', keyOf(one, 'ready')])),
    pending: sum(pendingIn),
    runs: sum((one) => count(['HLEN', keyOf(one, 'runs')])),
    line: sum((one) => count(['ZCARD', keyOf(one, 'line')])),
    holds: sum((one) => count(['ZCARD', keyOf(one, 'holds')])),
  });

  return {
    left,
    members: () => all.flatMap(membersIn),
    isEmpty: () => Object.values(left()).every((size) => size === 0),
    repaired: () => sum((one) => Number(ask(['HGET', keyOf(one, 'meta'), 'n.mended']) ?? 0)),
    /** @param {string} folder of the scripts */
    flaws: (folder) => all.flatMap((partition) => flawsIn(ask, { partition, folder })),
  };
}

/**
 * The invariants of the design at one moment, as the product's own examination sees them, and I11.
 *
 * @param {(words: readonly string[]) => Reply} ask
 * @param {{ partition: number, folder: string }} of
 * @returns {string[]}
 */
function flawsIn(ask, { partition, folder }) {
  const run = (/** @type {string} */ verb, /** @type {string[]} */ keys, /** @type {string[]} */ args) => {
    const source = readFileSync(join(folder, `${verb}.lua`), 'latin1');
    const named = keys.map((name) => keyOf(partition, name));
    return /** @type {string[]} */ (ask(['EVAL_RO', source, String(named.length), ...named, ...args]));
  };
  const checkMembers = run(
    'check-members',
    ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'tags'],
    ['all', '0', '100000'],
  ).slice(4);
  const checkEntries = ['ready', 'pending'].flatMap((part) =>
    run('check-entries', ['ready'], [part, '', '100000']).slice(3),
  );
  const checkGates = ['entries', 'holds', 'waiting', 'places', 'lanes'].flatMap((part) =>
    run('check-gates', ['scheduled', 'ready', 'meta', 'line', 'lanes', 'holds'], [part, '', '100000']).slice(2),
  );
  const found = [...checkMembers, ...checkEntries, ...checkGates].join(' ');
  return [...(found === '' ? [] : [found]), ...unbalanced(ask, partition)];
}

/** I11: what came in is live or went out. @param {(words: readonly string[]) => Reply} ask @param {number} partition */
function unbalanced(ask, partition) {
  const of = (/** @type {string[]} */ ...names) =>
    names.reduce((total, name) => total + Number(ask(['HGET', keyOf(partition, 'meta'), `n.${name}`]) ?? 0), 0);
  const live = /** @type {string[]} */ (ask(['HGETALL', keyOf(partition, 'jobs')])).filter(
    (content, at) => at % 2 === 1 && !content.startsWith('.'),
  ).length;
  const [into, out] = [of('scheduled', 'replayed', 'adopted'), of('done', 'dead', 'cancelled', 'expired')];
  return into === live + out ? [] : [`I11: ${into} came in, ${live} live, ${out} went out`];
}
