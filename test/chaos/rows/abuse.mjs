/** Abuse of what anybody may hand in: scores, sizes, ids, names, data and texts that are meant to break something. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, DuestreamError } from 'duestream';
import { jsonOf, NASTY_IDS, nasty, REFUSED_IDS, REFUSED_NAMES, sizes, UNREADABLE } from '../faults/abuse.mjs';
import { keyOf } from '../judge/dump.mjs';
import { atLeast, atMost, exactly } from '../judge/predicates.mjs';
import { callSchedule } from '../stage/foreign.mjs';
import * as load from '../stage/load.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

const SMALL = { crashes: 0, poison: 0, jobs: 400 };
const LIMIT = 262_144;
const FUZZ = 10_000;
/** A log line carries one error, cut, and some ids. */
const LINE_MAX = 8192;

/** @type {readonly Row[]} */
export const abuseRows = [
  {
    id: 'F70',
    title: 'scores that are no due time',
    how: 'ZADD with inf, -inf, -5, 0x10, 1e3, 2^53 + 1, seconds, microseconds, 0 and half milliseconds',
    wanted: '6 dead letters bad-due; doctor reports 3 suspects and they stay; the rest runs',
    workload: SMALL,
    async inject({ redis, cast, asked, sleep }) {
      const now = Date.now();
      const scheduled = keyOf(0, 'scheduled');
      const bad = ['-inf', '-5', '0x10', '1e3', String(Math.floor(now / 1000)), '-1763719000000'];
      for (const [at, score] of bad.entries()) await redis.zadd(scheduled, score, `bad-${at}`);
      const far = ['inf', '9007199254740993', String(now * 1000)];
      for (const [at, score] of far.entries()) await redis.zadd(scheduled, score, `far-${at}`);
      for (const [id, score] of [
        ['zero', '0'],
        ['half', `${now}.5`],
        ['soon', String(now + 500)],
      ]) {
        asked(id ?? '');
        await redis.zadd(scheduled, score ?? '', id ?? '');
      }
      await sleep(3000);
      const doctor = await load.commandLine(cast, ['doctor', '--json']);
      const told = /(\d+) due times? past the horizon/.exec(doctor.out);
      const deadLettersTold = /(\d+) dead letters? for the reason bad-due/.exec(doctor.out);
      // What an operator does about it.
      const kept = await redis.zrem(scheduled, ...far.map((_, at) => `far-${at}`));
      return { suspects: Number(told?.[1] ?? 0), deadLettersTold: Number(deadLettersTold?.[1] ?? 0), kept };
    },
    pass: ({ deadLetters, noted, effects, report }) => [
      ...exactly('dead letters about due times', deadLetters['bad-due'] ?? 0, 6),
      ...exactly('other dead letters', Object.keys(deadLetters).length, 1),
      ...exactly('suspects reported', noted.suspects ?? 0, 3),
      ...exactly('dead letters reported', noted.deadLettersTold ?? 0, 6),
      ...exactly('suspects that stayed', noted.kept ?? 0, 3),
      ...exactly(
        'runs of the rest',
        effects.filter(({ ev, id = '' }) => ev === 'effect' && ['zero', 'half', 'soon'].includes(id)).length,
        3,
      ),
      ...atMost('ms late at most', report.counts.lateMaxMs, 3000),
    ],
  },
  {
    id: 'F77',
    title: 'data of nothing, of one byte, up to the limit and beyond it',
    whole: true,
    how: 'the client and schedule.lua are given 0 B, 1 B, the limit, 1 B more, 10 MB, lone surrogates, bytes that are no UTF-8',
    wanted: 'beyond the limit refused by both, the rest arrives byte for byte',
    workload: SMALL,
    inject: withClient(async ({ redis, cast }, producer) => {
      await load.declareLoad(redis);
      load.loadWorker(cast);
      /** @type {Map<string, string>} */
      const sent = new Map();
      let refused = 0;
      for (const [at, data] of sizes(LIMIT).fit.entries()) {
        await producer.schedule('load', data, { id: `fit-${at}`, name: 'weigh' });
        sent.set(`fit-${at}`, jsonOf(data));
      }
      for (const data of sizes(LIMIT).over) {
        const error = await producer.schedule('load', data, { name: 'weigh' }).catch((reason) => reason);
        if (error instanceof DuestreamError && error.code === 'bad-input') refused += 1;
      }
      const raw = await intoScript(redis);
      const ran = () => load.loadRuns(cast).length >= sent.size + 2;
      await load.waitFor(ran, 'all that fits ran', 15_000);
      const runs = load.loadRuns(cast);
      const exact = [...sent].filter(([id, text]) =>
        runs.some((run) => run.id === id && run.digest === load.digestOf(text)),
      );
      return {
        fit: sent.size,
        exact: exact.length,
        runs: runs.length,
        refused,
        ...raw,
        largest: Math.max(...runs.map(({ bytes = 0 }) => bytes)),
        stored: await redis.hlen(load.loadKey('jobs')),
      };
    }),
    pass: ({ noted }) => [
      ...exactly('data that arrived as it was', noted.exact ?? 0, noted.fit ?? -1),
      ...exactly('runs', noted.runs ?? 0, (noted.fit ?? 0) + 2),
      ...exactly('bytes of the largest', noted.largest ?? 0, LIMIT),
      ...exactly('refused by the client', noted.refused ?? 0, sizes(LIMIT).over.length),
      ...exactly('refused by the script', noted.scriptRefused ?? 0, 2),
      ...exactly('taken by the script', noted.scriptTook ?? 0, 2),
      ...exactly('members that anything is known about', noted.stored ?? 0, (noted.fit ?? 0) + 2),
    ],
  },
  {
    id: 'F79',
    title: 'ids and names that are code somewhere else',
    whole: true,
    how: 'quotes, Lua, shell, glob and format characters as ids; CRLF, braces, spaces and control characters to be refused',
    wanted: 'each allowed id runs once; scripts in Redis are exactly ours; no key that is not ours',
    workload: SMALL,
    inject: withClient(async ({ redis, cast }, producer) => {
      await load.declareLoad(redis);
      load.loadWorker(cast);
      let refused = 0;
      const isRefused = (/** @type {unknown} */ error) => error instanceof DuestreamError && error.code === 'bad-input';
      for (const id of NASTY_IDS) await producer.schedule('load', { id }, { id, name: 'count' });
      for (const id of REFUSED_IDS) {
        if (isRefused(await producer.schedule('load', 1, { id }).catch((error) => error))) refused += 1;
      }
      for (const name of REFUSED_NAMES) {
        if (isRefused(await producer.schedule('load', 1, { name }).catch((error) => error))) refused += 1;
        if (isRefused(await producer.schedule(name, 1).catch((error) => error))) refused += 1;
      }
      const replies = await callSchedule(redis, {
        items: REFUSED_IDS.filter((id) => /[^!-~]/.test(id) || id === '').map((id) => [
          `j:${id}`,
          `1${Date.now().toString(36)}|{}`,
        ]),
        bytes: LIMIT,
      });
      for (const id of UNREADABLE) await redis.zadd(load.loadKey('scheduled'), Date.now(), id);
      const deadLetters = async () => (await redis.xlen(load.loadKey('dead'))) === UNREADABLE.length;
      await load.waitFor(() => load.loadRuns(cast).length >= NASTY_IDS.length, 'all ids ran', 60_000);
      await load.waitFor(deadLetters, 'a dead letter of each member nobody can run', 60_000);
      const runs = load.loadRuns(cast).map(({ id }) => id);
      const shown = await Promise.all(
        NASTY_IDS.slice(0, 3).map((id) => load.commandLine(cast, ['show', 'load', '--json', '--', id])),
      );
      return {
        ids: NASTY_IDS.length,
        ran: runs.length,
        ranOnce: NASTY_IDS.filter((id) => runs.includes(id)).length,
        refused,
        badMembers: replies.filter((reply) => reply === 'bad-member').length - replies.length,
        shown: shown.filter(({ out }) => out.includes('"done"')).length,
        ...(await ourScripts(redis, cast.lua)),
        strangeKeys: await strangeKeys(redis),
      };
    }),
    pass: ({ noted }) => [
      ...exactly('ids that ran', noted.ranOnce ?? 0, NASTY_IDS.length),
      ...exactly('runs', noted.ran ?? 0, NASTY_IDS.length),
      ...exactly('refused by the client', noted.refused ?? 0, REFUSED_IDS.length + 2 * REFUSED_NAMES.length),
      ...exactly('members that the script let pass', noted.badMembers ?? 1, 0),
      ...exactly('ids that the command line shows', noted.shown ?? 0, 3),
      ...exactly('scripts in Redis that are not ours', noted.foreignScripts ?? 1, 0),
      ...exactly('keys that are not ours', noted.strangeKeys ?? 1, 0),
    ],
  },
  {
    id: 'F84',
    title: 'data, names and fields that reach for prototypes',
    how: `${FUZZ} jobs with __proto__ and constructor.prototype in all places; members, counters and names called so`,
    wanted: 'no object of any process got anything',
    workload: SMALL,
    inject: withClient(async ({ redis, cast, random }, producer) => {
      await load.declareLoad(redis);
      load.loadWorker(cast, { DUESTREAM_WORKER__CONCURRENCY: '100' });
      const sent = new Map(Array.from({ length: FUZZ }, (_, at) => [`fuzz-${at}`, nasty(random)]));
      const jobs = [...sent].map(([id, data]) => ({ id, name: 'read', data }));
      for (let from = 0; from < FUZZ; from += 500) await producer.scheduleMany('load', jobs.slice(from, from + 500));
      const names = ['constructor', 'toString', 'valueOf', 'hasOwnProperty'];
      for (const name of names) await producer.schedule('load', 1, { id: name, name });
      await producer.schedule('load', 1, { id: '__proto__' });
      await redis.hset(load.loadKey('meta'), 'n.__proto__', '1', '__proto__', '1', 'n.constructor', '1');
      await redis.zadd(load.loadKey('scheduled'), Date.now(), '__proto__', Date.now(), 'constructor');
      const head = `1${Date.now().toString(36)}`;
      const records = ['{"n":"read","o":{"__proto__":{"a":1}}}', '{"n":"read","__proto__":{"polluted":1}}'];
      await callSchedule(redis, { items: records.map((json, at) => [`j:raw-${at}`, `${head}|${json}`]), bytes: LIMIT });
      const wanted = FUZZ + 1 + 2 + records.length;
      await load.waitFor(() => load.loadRuns(cast).length >= wanted, `${wanted} runs`, 60_000);
      const found = await producer.get('load', '__proto__');
      const stats = await load.commandLine(cast, ['queues', 'show', 'load', '--json']);
      const runs = load.loadRuns(cast);
      const bare = /** @type {Record<string, unknown>} */ ({});
      return {
        runs: runs.length - wanted,
        polluted: runs.filter(({ polluted }) => polluted === true).length + ('polluted' in bare ? 1 : 0),
        read: runs.filter(({ polluted }) => polluted === false).length,
        exact: runs.filter(({ id, digest }) => sent.has(id) && digest === load.digestOf(jsonOf(sent.get(id)))).length,
        found: found?.id === '__proto__' ? 1 : 0,
        stats: stats.out.startsWith('{') ? 1 : 0,
        deadLetters: (await redis.xlen(load.loadKey('dead'))) - names.length,
      };
    }),
    pass: ({ noted }) => [
      ...exactly('runs too many', noted.runs ?? 1, 0),
      ...exactly('runs that found what nobody had sent', noted.polluted ?? 1, 0),
      ...exactly('runs that looked', noted.read ?? 0, FUZZ + 2),
      ...exactly('data that arrived as it was', noted.exact ?? 0, FUZZ),
      ...exactly('jobs found by such an id', noted.found ?? 0, 1),
      ...exactly('answers of queues show', noted.stats ?? 0, 1),
      ...exactly('dead letters besides those of names without a handler', noted.deadLetters ?? 1, 0),
    ],
  },
  {
    id: 'F86',
    title: 'texts that want to be lines of a log',
    how: 'CR, LF, ESC, U+2028 and 200 kB in errors, names, members and names of consumers, at the log level debug',
    wanted: 'every line of every log is one JSON record of at most 8 KiB; no control character anywhere',
    workload: { ...SMALL, odd: 0.1 },
    env: { DUESTREAM_LOG__LEVEL: 'debug' },
    inject: withClient(async ({ redis, cast, sleep }, producer) => {
      await load.declareLoad(redis);
      load.loadWorker(cast);
      const forged = '{"level":"error","msg":"forged"}';
      const texts = [
        `a\r\n${forged}`,
        `\u001b[2J\u001b]0;x\u0007${forged}`,
        `\u2028${forged}\u2029`,
        'x'.repeat(200_000),
        '\0\x9b31m',
      ];
      for (const [at, text] of texts.entries())
        await producer.schedule('load', text, { id: `rude-${at}`, name: 'insult' });
      const head = `1${Date.now().toString(36)}`;
      const items = texts.slice(0, 3).map((text, at) => [`j:named-${at}`, `${head}|${JSON.stringify({ n: text })}`]);
      await callSchedule(redis, { items: [...items, ['j:torn', `${head}|{\r\n${forged}`]], bytes: LIMIT });
      for (const text of texts) await redis.zadd(load.loadKey('scheduled'), Date.now(), text);
      await redis.call('XGROUP', 'CREATECONSUMER', load.loadKey('ready'), 'workers', texts[0] ?? '');
      await load.waitFor(
        async () => (await redis.xlen(load.loadKey('dead'))) >= 2 * texts.length + 4,
        'deadLetters',
        15_000,
      );
      await sleep(6000);
      const told = await Promise.all(
        [
          ['dead', 'ls', 'load'],
          ['show', 'load', 'rude-0'],
          ['show', 'load', 'rude-1'],
          ['ls', 'load', '--state', 'dead'],
          ['queues', 'workers'],
        ].map((args) => load.commandLine(cast, args)),
      );
      return {
        told: told.filter(({ out }) => out !== '').length,
        raw: told.filter(({ out, err }) => isRaw(out + err)).length,
      };
    }),
    pass({ actors, noted }) {
      const logs = [...new Set(actors.map(({ log }) => log))].map((log) => readFileSync(log, 'utf8'));
      const lines = logs.flatMap((text) => text.split('\n').filter((line) => line !== ''));
      const forged = lines.filter((line) => /^\{"level":"error","msg":"forged"/.test(line));
      return [
        ...atLeast('lines', lines.length, 100),
        ...atLeast('lines about the insults', lines.filter((line) => line.includes('rude-')).length, 5),
        ...exactly('lines that are no JSON record', lines.filter((line) => !isRecord(line)).length, 0),
        ...exactly('forged lines', forged.length, 0),
        ...exactly('logs with control characters', logs.filter(isRaw).length, 0),
        ...atMost('bytes of the longest line', Math.max(...lines.map((line) => Buffer.byteLength(line))), LINE_MAX),
        ...exactly('answers of the command line with control characters', noted.raw ?? 1, 0),
        ...atLeast('answers of the command line', noted.told ?? 0, 4),
      ];
    },
  },
];

/**
 * Injects with a client of the library, which is let go whatever happens.
 *
 * @param {(scene: import('../stage/scene.mjs').Scene, producer: import('duestream').Client) => Promise<Readonly<Record<string, number>>>} act
 * @returns {import('../stage/run.mjs').Row['inject']}
 */
function withClient(act) {
  return async (scene) => {
    const producer = createClient({ redis: scene.cast.url });
    try {
      return await act(scene, producer);
    } finally {
      await producer.close();
    }
  };
}

/** Records of the limit, of more and of bytes that are no text, into the script itself. @param {import('ioredis').Redis} redis */
async function intoScript(redis) {
  const head = `1${Date.now().toString(36)}|{"n":"weigh","d":"`;
  const sized = (/** @type {number} */ bytes) => `${head}${'x'.repeat(bytes - head.length - 2)}"}`;
  const torn = Buffer.concat([Buffer.from(head), Buffer.from([0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80]), Buffer.from('"}')]);
  const items = [
    ['j:script-fit', sized(LIMIT)],
    ['j:over', sized(LIMIT + 1)],
    ['j:huge', sized(10_000_000)],
    ['j:torn', torn],
  ];
  /** @type {string[]} */
  const replies = [];
  for (const item of items) replies.push(...(await callSchedule(redis, { items: [item], bytes: LIMIT })));
  const count = (/** @type {string} */ wanted) => replies.filter((reply) => reply === wanted).length;
  return { scriptTook: count('ok'), scriptRefused: count('too-large') };
}

/**
 * Scripts that Redis keeps: all of them must be files of ours.
 *
 * @param {import('ioredis').Redis} redis
 * @param {string} folder
 */
async function ourScripts(redis, folder) {
  const digests = readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .map((name) => load.digestOf(readFileSync(join(folder, name), 'utf8'), 'sha1'));
  const known = await redis.script('EXISTS', ...digests);
  const ours = (Array.isArray(known) ? known : []).filter((one) => one === 1).length;
  const cached = Number(/number_of_cached_scripts:(\d+)/.exec(await redis.info('memory'))?.[1]);
  return { scripts: cached, foreignScripts: cached - ours };
}

/** @param {import('ioredis').Redis} redis */
async function strangeKeys(redis) {
  const ours = /^duestream:v1:\{(chaos:\d|load:0|control)\}:[a-z]+(:[\w-]+)?$/;
  return (await redis.keys('*')).filter((key) => !ours.test(key)).length;
}

/** Control characters but line ends, and what some readers take for line ends. @param {string} text */
function isRaw(text) {
  return /(?!\n)[\p{Cc}\u2028\u2029]/u.test(text);
}

/** @param {string} line */
function isRecord(line) {
  try {
    const record = JSON.parse(line);
    return typeof record === 'object' && record !== null && typeof record.msg === 'string';
  } catch {
    return false;
  }
}
