/** Who may reach Redis, and what he may do there. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeCertificates } from '../faults/certificates.mjs';
import { tlsSettings, tryWrong, whyNoTls } from '../faults/tls.mjs';
import { refusals, trespass, urlOf, withUsers } from '../faults/users.mjs';
import { keyOf } from '../judge/dump.mjs';
import { atLeast, exactly, settled } from '../judge/predicates.mjs';
import { LOAD_MODULE, loadKey } from '../stage/load.mjs';
import { everyVerb } from '../stage/verbs.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

const SMALL = { jobs: 800, poison: 0.001, farMs: 6000 };
/** Nobody of ours needs these. */
const FOREIGN = [
  ...[
    ['FLUSHALL'],
    ['FLUSHDB'],
    ['CONFIG', 'SET', 'maxmemory', '1'],
    ['CONFIG', 'GET', '*'],
    ['KEYS', '*'],
    ['SCAN', '0'],
  ],
  ...[
    ['DEBUG', 'SLEEP', '0'],
    ['SCRIPT', 'FLUSH'],
    ['SCRIPT', 'KILL'],
    ['FUNCTION', 'FLUSH'],
    ['SHUTDOWN', 'NOSAVE'],
  ],
  ...[
    ['ACL', 'SETUSER', 'other', 'on'],
    ['ACL', 'LIST'],
    ['MONITOR'],
    ['CLIENT', 'LIST'],
    ['CLIENT', 'KILL', 'ID', '1'],
  ],
  ...[['REPLICAOF', 'NO', 'ONE'], ['SAVE'], ['SELECT', '1'], ['SWAPDB', '0', '1'], ['MODULE', 'LIST']],
  ...[
    ['SPUBLISH', 'other', 'x'],
    ['PUBLISH', 'other', 'x'],
    ['SSUBSCRIBE', 'other'],
    ['HGET', 'other', 'x'],
  ],
  ...[
    ['SPUBLISH', 'duestream:v2:x', 'x'],
    ['HSET', 'other', 'x', 'y'],
    ['HGET', 'other:v1:{chaos:0}:jobs', 'x'],
  ],
  ['EVAL', "return redis.call('FLUSHALL')", '0'],
  ['EVAL', "return redis.call('HGET', 'other', 'x')", '0'],
];
const OF_WORKERS = [
  ['XREADGROUP', 'GROUP', 'workers', 'x', 'STREAMS', keyOf(0, 'ready'), '>'],
  ['XADD', keyOf(0, 'ready'), '*', 'member', 'x', 'due', '1'],
  ['SET', keyOf(0, 'leader'), 'x'],
  ['UNLINK', keyOf(0, 'jobs')],
  ['EVAL', "return redis.call('DEL', KEYS[1])", '1', keyOf(0, 'jobs')],
];
const OF_OTHER_QUEUES = [
  ['ZADD', 'duestream:v1:{other:0}:scheduled', '1', 'x'],
  ['HSET', 'duestream:v1:{control}:alive', 'x', 'y'],
  ['SSUBSCRIBE', 'duestream:v1:{chaos:0}:wake'],
];
const OF_PRODUCERS = [
  ['ZADD', keyOf(0, 'scheduled'), '1', 'x'],
  ['HSET', keyOf(0, 'jobs'), 'x', 'y'],
  ['EVAL', "return redis.call('ZADD', KEYS[1], 1, 'x')", '1', keyOf(0, 'scheduled')],
];
/**
 * What `doctor` looks for and says that it could not see, what it tries since a service may not offer it, and a line of the audit
 * by a user who may only produce.
 */
const DECLARED = ['acl|whoami', 'config|get', 'scan', 'xadd', 'client|id', 'spublish', 'wait', 'xreadgroup'];

const HANDLERS = fileURLToPath(new URL('../stage/handlers.mjs', import.meta.url));

let port = 0;
/** @type {Awaited<ReturnType<typeof makeCertificates>> | undefined} */
let made;

/** @type {readonly Row[]} */
export const accessRows = [
  {
    id: 'F87',
    title: 'users of Redis that may do only what is needed, and no default user',
    how: 'ACL file with the lines of docs/how-to/secure-redis.md; a daemon and a worker leave and two are killed; every verb is run; each user tries what is not his',
    wanted: 'refused to us 0 but for what doctor declares, verbs that fail 0, trespasses that get through 0',
    workload: SMALL,
    drainMs: 25_000,
    async prepare(folder) {
      const special = await withUsers(folder);
      port = special.port;
      return special;
    },
    async inject({ cast, folder, redis, until, anyWorker, leaderOf }) {
      const worker = cast.otherWorker(LOAD_MODULE, 'load', { CHAOS_LOAD: join(folder, 'load.jsonl') });
      await worker.started;
      // One of each leaves in order, and one dies; but the verbs need the worker of their queue.
      await Promise.all([cast.dismiss(await anyWorker(worker)), cast.dismiss(await leaderOf(1))]);
      cast.send(await leaderOf(0), 'SIGKILL');
      cast.send(await anyWorker(worker), 'SIGKILL');
      await until(async () => (await redis.exists(loadKey('leader'))) === 1, 'a leader of load');
      const verbs = await everyVerb({
        main: cast.main,
        all: urlOf('duestream', port),
        producing: urlOf('shop', port),
        looking: urlOf('onlooker', port),
      });
      const through = [
        ...(await trespass('duestream', port, FOREIGN)),
        ...(await trespass('shop', port, [...FOREIGN, ...OF_WORKERS, ...OF_OTHER_QUEUES])),
        ...(await trespass('onlooker', port, [...FOREIGN, ...OF_WORKERS, ...OF_PRODUCERS])),
      ];
      writeFileSync(join(folder, 'access.json'), JSON.stringify({ failed: verbs.failed, through }, null, 2));
      return { verbs: verbs.run, failed: verbs.failed.length, through: through.length };
    },
    async after({ redis, folder }) {
      const all = await refusals(redis);
      const undeclared = all.filter(
        ({ object, client, reason }) =>
          !(reason === 'command' && client === 'duestream:cli' && DECLARED.includes(object)),
      );
      writeFileSync(join(folder, 'acl-log.json'), JSON.stringify(all, null, 2));
      return { refused: undeclared.length, declared: all.length - undeclared.length };
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...exactly('commands of ours that were refused', outcome.noted.refused ?? -1, 0),
      ...exactly('verbs that failed', outcome.noted.failed ?? -1, 0),
      ...atLeast('verbs', outcome.noted.verbs ?? 0, 35),
      ...exactly('trespasses that got through', outcome.noted.through ?? -1, 0),
    ],
  },
  {
    id: 'F88',
    title: 'TLS by a private authority, and certificates and ports that are wrong',
    how: 'the workload over rediss:// as those users; beside it start, worker and doctor at a certificate that has expired, is for another host, of an unknown authority or self-signed, at a plain port, and without TLS at a TLS port',
    wanted: 'each refuses and says why and what to do, commands that reach such a server 0, passwords seen 0',
    impossible: whyNoTls,
    workload: { jobs: 400, crashes: 0, poison: 0, farMs: 6000 },
    drainMs: 25_000,
    async prepare(folder) {
      made = await makeCertificates(folder);
      const special = await withUsers(folder, 'rediss');
      const settings = { ...special.settings, ...tlsSettings(made.good, made.authority, special.port), port: '0' };
      return { ...special, settings, actorEnv: { NODE_EXTRA_CA_CERTS: made.authority } };
    },
    async inject({ cast, folder, binary }) {
      if (!made) throw new Error('there are no certificates');
      const { good, expired, elsewhere, selfSigned, authority } = made;
      const unknown = {
        saw: /does not trust the authority that signed its certificate/,
        remedy: /set NODE_EXTRA_CA_CERTS/,
      };
      /** @type {readonly import('../faults/tls.mjs').Wrong[]} */
      const all = [
        { name: 'expired', certificate: expired, authority, saw: /certificate has expired/, remedy: /renew it/ },
        {
          name: 'elsewhere',
          certificate: elsewhere,
          authority,
          saw: /for another host/,
          remedy: /use the host name of its certificate/,
        },
        { name: 'unknown', certificate: good, ...unknown },
        { name: 'self-signed', certificate: selfSigned, authority, ...unknown },
        { name: 'plain', certificate: good, authority, plain: true, saw: /not answer in TLS/, remedy: /redis:/ },
        { name: 'tls', certificate: good, scheme: 'redis', saw: /before its first word/, remedy: /rediss:/ },
      ];
      const by = { folder, binary, main: cast.main, handlers: HANDLERS, authority };
      const results = await Promise.all(all.map((wrong) => tryWrong(wrong, by)));
      const complaints = results.flatMap((result) => result.complaints);
      writeFileSync(join(folder, 'tls.json'), JSON.stringify(results, null, 2));
      const reached = results.reduce((sum, { commands }) => sum + commands, 0);
      return { tried: 3 * results.length, wrong: complaints.length, reached };
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...exactly('answers that are not as they must be', outcome.noted.wrong ?? -1, 0),
      ...exactly('processes that tried', outcome.noted.tried ?? 0, 18),
      ...exactly('commands that reached a server that is not trusted', outcome.noted.reached ?? -1, 0),
    ],
  },
];
