/**
 * Negative controls: builds that are broken on purpose. A judge that finds nothing wrong with them is worth nothing, so
 * a control passes only when the row complains about what the build was broken for.
 */
import { rmSync } from 'node:fs';
import { before, dropped } from '../marks.mjs';
import { loseReplies } from '../rows/redis.mjs';
import { rows } from '../rows/rows.mjs';
import { runRow } from '../stage/run.mjs';
import { patchedCopy } from './copies.mjs';

/**
 * @typedef {object} Control
 * @property {string} id
 * @property {string} title
 * @property {string} row in which it must be caught
 * @property {readonly string[]} expected anomalies, or beginnings of complaints, one of which must be found
 * @property {Partial<import('../stage/run.mjs').Row>} [change] of the row
 * @property {readonly import('./copies.mjs').Patch[]} patches
 */

/** Of a group as many run as there are slots. */
const withoutHolds = [
  { file: 'lua/serve.lua', mark: 'hold-through', edit: dropped },
  { file: 'lua/serve.lua', mark: 'hold-begun', edit: dropped },
  { file: 'lua/promote.lua', mark: 'hold-through', edit: dropped },
  { file: 'lua/promote.lua', mark: 'hold-past', edit: dropped },
];

/** @type {readonly Control[]} */
export const controls = [
  {
    id: 'N1',
    title: 'promote removes before it adds, and is sometimes cut off in between',
    row: 'F14',
    expected: ['LOST', 'REPAIRED'],
    patches: [
      { file: 'lua/promote.lua', mark: 'remove-moved', edit: dropped },
      {
        file: 'lua/promote.lua',
        mark: 'move-each',
        edit: before(
          "for at = 1, #found, 2 do if tonumber(found[at + 1]) <= now then redis.call('ZREM', keys.scheduled, found[at]) end end",
          "if #found > 0 and tonumber(found[2]) <= now and now % 10 == 0 then error('cut off') end",
        ),
      },
    ],
  },
  {
    id: 'N2',
    title: 'promote does not ask whose term it is',
    row: 'F4',
    expected: ['TWO-LEADERS'],
    patches: [{ file: 'lua/promote.lua', mark: 'fence', edit: dropped }],
  },
  {
    id: 'N3',
    title: 'jobs are taken over by idle time alone, from the living too',
    row: 'F33',
    change: { workload: { jobs: 200, workMs: [300, 1500] } },
    expected: ['DUP-START', 'OVERLAP', 'ZOMBIE'],
    patches: [
      {
        file: 'dist/worker/recover/reclaimer.js',
        mark: 'watch-others',
        edit: before('for (const { name } of others) missing.add(name);'),
      },
      { file: 'dist/worker/recover/reclaimer.js', mark: 'proof-of-death', edit: before('return true;') },
      {
        file: 'dist/worker/recover/reclaimer.js',
        mark: 'reclaim-parts',
        edit: before('parts = { ...parts, jobLeaseMs: 300 };'),
      },
    ],
  },
  {
    id: 'N4',
    title: 'the client sends a call again as another call, with a due time of its own',
    row: 'F27',
    change: {
      // Jobs that are over by the time at which their call is sent again.
      workload: { jobs: 800, callsMs: 8000, nearMs: 0, farMs: 0, workMs: [1, 5], throws: 0, crashes: 0, poison: 0 },
      inject: ({ theLine, sleep }) => loseReplies(theLine(), { verbs: ['schedule'], each: 30, sleep }),
      pass: () => [],
    },
    expected: ['DUP-START', 'ZOMBIE'],
    patches: [
      {
        file: 'dist/client/calls/batch.js',
        mark: 'send-chunk',
        edit: before(
          'const anew = ({ record, ...plan }) => {',
          '  const dueMs = Math.max(plan.dueMs, Date.now());',
          "  return { ...plan, dueMs, record: '1' + dueMs.toString(36) + record.slice(record.search(/[;|]/)) };",
          '};',
          'const jobs = { schedule: (to, all, how) => this.#parts.jobs.schedule(to, all.map(anew), how) };',
        ),
      },
    ],
  },
  {
    id: 'N5',
    title: 'limits: a job that is let through has no hold',
    row: 'F100',
    expected: ['OVER-GROUP'],
    patches: withoutHolds,
  },
  {
    id: 'N6',
    title: 'limits: how many jobs the queue runs is not looked at',
    row: 'F105',
    expected: ['OVER-QUEUE'],
    patches: [{ file: 'lua/serve.lua', mark: 'queue-room', edit: dropped }],
  },
  {
    id: 'N7',
    title: 'limits: a worker that becomes free lets nobody through',
    row: 'F101',
    expected: ['starts while nobody led'],
    patches: [
      { file: 'lua/serve.lua', mark: 'fill-slots', edit: () => 'local given = 0' },
      { file: 'lua/retry.lua', mark: 'ring-bell', edit: dropped },
    ],
  },
  {
    id: 'N8',
    title: 'limits: those that a deposed leader sets count',
    row: 'F102',
    expected: ['limits that a deposed leader set', 'OVER-QUEUE'],
    patches: [
      { file: 'lua/limit.lua', mark: 'fence', edit: dropped },
      // The call was given up long ago: that alone would keep it out.
      { file: 'lua/limit.lua', mark: 'late', edit: () => 'if false then' },
    ],
  },
  {
    id: 'N9',
    title: 'limits: the rate is not looked at',
    row: 'F104',
    expected: ['OVER-RATE'],
    patches: [
      { file: 'lua/serve.lua', mark: 'without-rate', edit: () => 'do return math.huge end' },
      { file: 'lua/promote.lua', mark: 'without-rate', edit: () => 'do return math.huge end' },
    ],
  },
  {
    id: 'N10',
    title: 'limits: the janitor mends nothing',
    row: 'F103',
    expected: ['STUCK'],
    patches: [{ file: 'dist/mover/chores/gatekeeper.js', mark: 'mend-flaws', edit: () => 'if (false)' }],
  },
  {
    id: 'N11',
    title: 'limits: those of a live queue stay as they are',
    row: 'F106',
    expected: ['OVER-QUEUE', 'OVER-RATE'],
    patches: [
      {
        file: 'lua/limit.lua',
        mark: 'same-limits',
        edit: () => "if before and before:sub(1, 1) ~= '-' then return 'same' end",
      },
    ],
  },
  {
    id: 'N12',
    title: 'limits: a job that is let through has no hold, through a failover of Sentinel',
    row: 'F107',
    expected: ['OVER-GROUP'],
    patches: withoutHolds,
  },
  {
    id: 'N13',
    title: 'limits: each partition of a cluster gets what is for the whole queue',
    row: 'F108',
    expected: ['OVER-QUEUE'],
    patches: [{ file: 'dist/job/gate.js', mark: 'share-of-concurrency', edit: () => 'const most = concurrency;' }],
  },
  {
    id: 'N14',
    title: 'closed tags: neither who schedules nor who starts a job asks for them',
    row: 'F110',
    expected: ['starts after'],
    patches: ['schedule', 'start', 'serve'].map((verb) => ({
      file: `lua/${verb}.lua`,
      mark: 'no-tags',
      edit: () => 'do return nil end',
    })),
  },
  {
    id: 'N15',
    title: 'a call is carried out after its end',
    row: 'F112',
    expected: ['calls that acted too late'],
    patches: ['cancel', 'close-tags', 'close', 'limit'].map((verb) => ({
      file: `lua/${verb}.lua`,
      mark: 'late',
      edit: () => 'if false then',
    })),
  },
  {
    id: 'N16',
    title: 'the client sends a due time that is 300 ms too early',
    row: 'F2',
    expected: ['NOT-LINEAR'],
    patches: [
      {
        file: 'dist/client/calls/batch.js',
        mark: 'send-chunk',
        edit: before(
          'const anew = ({ record, ...plan }) => {',
          '  const dueMs = plan.dueMs - 300;',
          "  return { ...plan, dueMs, record: '1' + dueMs.toString(36) + record.slice(record.search(/[;|]/)) };",
          '};',
          'const jobs = { schedule: (to, all, how) => this.#parts.jobs.schedule(to, all.map(anew), how) };',
        ),
      },
    ],
  },
  {
    id: 'N17',
    title: 'a run over HTTP is taken from a worker that beats',
    row: 'F117',
    change: {
      // Nothing breaks, and handlers run for longer than two looks.
      workload: { jobs: 150, callsMs: 12_000, nearMs: 800, farMs: 2000, groups: 60, workMs: [700, 1500], throws: 0 },
      inject: ({ sleep }) => sleep(12_000),
      pass: () => [],
    },
    expected: ['DUP-START', 'OVERLAP', 'OVER-GROUP'],
    patches: [
      {
        file: 'dist/remote/take-back.js',
        mark: 'idle-for-a-lease',
        edit: (line) => line.replace('idleMs: jobLeaseMs', 'idleMs: 100'),
      },
      {
        file: 'dist/remote/hand-out.js',
        mark: 'taken-after-a-lease',
        edit: (line) => line.replace('idleMs: jobLeaseMs', 'idleMs: 100'),
      },
    ],
  },
];

/**
 * @param {Control} control
 * @param {import('../stage/run.mjs').Settings} settings
 */
export async function runControl({ id, title, row: rowId, expected, patches, change }, settings) {
  const row = rows.find((candidate) => candidate.id === rowId);
  if (!row) throw new Error(`control ${id} names no row: ${rowId}`);
  const product = patchedCopy(settings.product, patches);
  try {
    const verdict = await runRow({ ...row, ...change }, { ...settings, product });
    const found = expected.filter(
      (kind) => (verdict.anomalies[kind] ?? 0) > 0 || verdict.complaints.some((line) => line.startsWith(kind)),
    );
    const passed = found.length > 0;
    if (verdict.kept && !settings.keep) rmSync(verdict.kept, { recursive: true, force: true });
    const complaints = passed ? [] : [`not caught: no ${expected.join(', ')} in ${rowId}`, ...verdict.complaints];
    return {
      ...verdict,
      id,
      title: `${title} (${rowId})`,
      passed,
      complaints,
      kept: undefined,
      verdict: /** @type {import('../stage/run.mjs').Verdict['verdict']} */ (passed ? 'passed' : 'failed'),
    };
  } finally {
    rmSync(product, { recursive: true, force: true });
  }
}
