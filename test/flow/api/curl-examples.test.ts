/** The examples of the reference, as they stand there: each is run by curl, or where there is none, taken apart and sent. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { verbs } from '../../../src/http/api/api.ts';
import { problemCodes, problemStatus } from '../../../src/http/api/problem.ts';
import { parseTarget } from '../../../src/job/target.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { buryJobs } from '../../support/buried.ts';
import { read } from '../../support/repository.ts';

const run = promisify(execFile);
const page = read('docs/reference/http-api.md');
const examples = [...page.matchAll(/^\|.*\| `(curl .+)` \|$/gm)].map(([, text = '']) => text);
let api: ServedApi;
let dir: string;
let variables: Readonly<Record<string, string>>;

/** The worker that the examples pause; it is there through all of them. */
const WORKER = {
  id: 'w-7f3a',
  role: 'worker',
  host: 'mill',
  pid: 7,
  startedMs: 1,
  queues: ['emails'],
  pauses: true,
} as const;
const WORKER_TTL_MS = 3_600_000;

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover', 'dispatcher'], http: { work: 'on' } });
  // The guard refuses it, so nothing is sent.
  const target = parseTarget('https://10.0.0.1/due', 'target');
  await declareQueue(api.place.redis, { namespace: 'duestream', queue: 'hooks', partitions: 1, target });
  await declareQueue(api.place.redis, { namespace: 'duestream', queue: 'imports', partitions: 1, perGroup: 1 });
  await beat(api.place.redis, { namespace: 'duestream', identity: WORKER, ttlMs: WORKER_TTL_MS });
  dir = await mkdtemp(join(tmpdir(), 'due-'));
  await buryJobs(
    api.redis.url,
    ['dead', 'doomed'].map((id) => ({ queue: 'emails', id, reason: 'gone' })),
  );
  const RUN =
    'WzAsMCwiMTc2MzcxOTAwMDAwMC0wIiwiajphIiwiMTc2MzcxOTAwMDAwMDAwMCIsMTc2MzcxOTAwMDAwMCw5MDAwMDAsMSwiZGVmYXVsdCIsIiJd';
  const NAME = 'h-shell-0f3c9a5be2d1476f8a90b1c2d3e4f506';
  const TOKEN = await api.tokenOf({ scopes: ['read'] });
  variables = { API: `${api.url}/v1`, TOKEN, JAR: join(dir, 'jar'), RUN, WORKER: NAME };
});
afterAll(async () => {
  await api.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The words of a line of a shell, without what no example needs. */
function wordsOf(line: string): readonly string[] {
  const filled = line.replaceAll(/\$([A-Z]+)/g, (_, name: string) => variables[name] ?? '');
  return [...filled.matchAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double?.replaceAll(/\\(.)/g, '$1') ?? plain ?? '',
  );
}

/** The status of an answer. */
async function send(line: string): Promise<number> {
  const { body } = await api.ask('GET /v1/queues/emails/dead?limit=1');
  const words = wordsOf(line.replace('1763719000000-0', body.deadLetters[0]?.deadLetter ?? ''));
  const [curl] = await findOnPath('curl', process.env.PATH);
  if (curl === undefined) return sent(words);
  const json = words.indexOf('--json');
  // curl knows --json since 7.82.
  const args = json < 0 ? words : words.toSpliced(json, 1, '-H', 'Content-Type: application/json', '-d');
  const { stdout } = await run(curl, ['-sS', '-o', join(dir, 'answer'), '-w', '%{http_code}', ...args.slice(1)]);
  return Number(stdout);
}

async function sent(words: readonly string[]): Promise<number> {
  const after = (flag: string) => (words.includes(flag) ? words[words.indexOf(flag) + 1] : undefined);
  const json = after('--json');
  const [name = '', value = ''] = (after('-H') ?? '').split(': ');
  const Cookie = words.includes('-b') ? cookie : undefined;
  const { status, headers } = await api.ask(
    `${after('-X') ?? (json === undefined ? 'GET' : 'POST')} ${words.find((word) => word.startsWith('http'))?.slice(api.url.length)}`,
    { body: json, headers: { ...(name === '' ? {} : { [name]: value }), ...(Cookie === undefined ? {} : { Cookie }) } },
  );
  if (words.includes('-c')) cookie = headers.get('set-cookie')?.split(';')[0] ?? '';
  return status;
}
let cookie = '';

test('there is an example of every verb', () => {
  const asked = examples.map((line) => {
    const [, flag] = /-X (\w+)/.exec(line) ?? [];
    const [, path = ''] = /\$API([^\s"?]*)/.exec(line) ?? [];
    return `${flag ?? (line.includes('--json') ? 'POST' : 'GET')} ${path}`;
  });
  const missing = verbs.filter(({ method, at }) => {
    const form = new RegExp(`^${method.toUpperCase()} ${at.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
    return !asked.some((one) => form.test(one));
  });
  expect(missing.map(({ name }) => name)).toEqual([]);
});

test.each(examples)('%s', async (line) => {
  // Here no queue promises anything about lateness.
  if (line.includes('/emails/slo')) expect(await send(line)).toBe(404);
  else expect(await send(line)).toBeLessThan(300);
});

test('the page names every problem, each with its status', () => {
  const rows = [...page.matchAll(/^\| (\d{3}) \| (.+?) \|/gm)].flatMap(([, status, cell = '']) =>
    [...cell.matchAll(/`([a-z-]+)`/g)].map(([, code]) => `${status} ${code}`),
  );
  expect(rows.toSorted()).toEqual(problemCodes.map((code) => `${problemStatus(code)} ${code}`).toSorted());
});
