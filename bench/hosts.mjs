/**
 * What one silent host costs all others: `npm run bench -- hosts`. A queue with a target, whose jobs call 200 hosts, one job a second
 * for each; the host is the group of its jobs. In every second round one host takes requests and never answers. How late the requests
 * of the 199 others arrive, by the clock that their due times are of. Hosts are addresses of this machine, so it needs Linux. Writes
 * `bench/results/hosts.json` and its section of `docs/reference/measured.md`.
 *
 *     --seconds 20   of jobs that come evenly
 *     --rounds 5     pairs of rounds: all hosts answer, then one is silent
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { freePort } from '../src/embedded/port.mjs';
import { median, rounded, settled, startDaemon, withRedis } from './parts.mjs';

/** @type {typeof import('../src/index.ts')} */
const { createClient } = await import(`${root}dist/index.js`);

const HOSTS = Array.from({ length: 200 }, (_, nth) => `127.0.1.${nth + 1}`);
const [SILENT = '', ...OTHERS] = HOSTS;
const QUEUE = 'calls';
const LEAD_MS = 3000;
const LOOK_MS = 50;

/** @typedef {{ p50: number, p99: number }} Late in ms */

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, refuse }) {
  if (process.platform !== 'linux')
    return refuse('hosts are addresses of 127.0.1.0/24, which Linux alone has by itself');
  const seconds = number('seconds', { otherwise: 20, from: 1, to: 600 });
  const rounds = number('rounds', { otherwise: 5, from: 1, to: 100 });
  const seen = [
    { hosts: 'all answer', isSilent: false, all: /** @type {Late[]} */ ([]) },
    { hosts: 'one is silent', isSilent: true, all: /** @type {Late[]} */ ([]) },
  ];
  for (let round = 0; round < rounds; round += 1) {
    for (const { isSilent, all } of seen) {
      all.push(await withRedis(binary, ({ url }) => latenessOf({ url, isSilent, seconds })));
    }
  }
  const rows = seen.map(({ hosts, all }) => ({
    hosts,
    p50: median(all.map((one) => one.p50)),
    p99: median(all.map((one) => one.p99)),
    p99s: all.map((one) => one.p99),
  }));
  const what = `200 hosts, a job a second for each, ${seconds} s; medians of ${rounds} rounds in turns; receivers, daemon and Redis on one machine`;
  return [{ name: 'hosts', what, rows }];
}

/**
 * How late requests to the others arrive.
 *
 * @param {{ url: string, isSilent: boolean, seconds: number }} of
 * @returns {Promise<Late>}
 */
async function latenessOf({ url, isSilent, seconds }) {
  const port = await freePort(22_000);
  /** @type {number[]} */
  const late = [];
  const receivers = HOSTS.map((host) =>
    createServer((request, response) => {
      if (isSilent && host === SILENT) return;
      if (host !== SILENT) late.push(Date.now() - Number(request.headers['duestream-due']));
      request.resume();
      response.end();
    }).listen(port, host),
  );
  await Promise.all(receivers.map((one) => once(one, 'listening')));
  const daemon = await startDaemon(url, {
    roles: 'mover,dispatcher',
    env: { DUESTREAM_TARGETS__ALLOW: HOSTS.join(',') },
  });
  const client = createClient({ redis: url });
  try {
    await client.schedule(QUEUE, null, { delay: '1d' });
    await client.queues.set(QUEUE, { target: { url: `http://${SILENT}:${port}/`, hosts: ['*'] } });
    while (!(await client.queues.get(QUEUE)).settings.fair) await sleep(LOOK_MS);
    await settled();
    await client.scheduleMany(QUEUE, callsTo(port, seconds));
    while (late.length < OTHERS.length * seconds) await sleep(LOOK_MS);
    const sorted = late.toSorted((a, b) => a - b);
    const at = (/** @type {number} */ part) => rounded(sorted[Math.floor(sorted.length * part)] ?? 0);
    return { p50: at(0.5), p99: at(0.99) };
  } finally {
    await client.close();
    daemon.kill();
    for (const one of receivers) {
      one.closeAllConnections();
      one.close();
    }
  }
}

/** Of each host at a time of its own within each second. @param {number} port @param {number} seconds */
function callsTo(port, seconds) {
  const fromMs = Date.now() + LEAD_MS;
  return HOSTS.flatMap((host, nth) =>
    Array.from({ length: seconds }, (_, second) => ({
      data: null,
      group: host,
      target: `http://${host}:${port}/`,
      at: new Date(fromMs + second * 1000 + nth * 5),
    })),
  );
}
