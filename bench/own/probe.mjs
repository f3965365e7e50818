/**
 * Another client of the same Redis, as a team has many: it sends a PING or a GET every millisecond, whether the last one was
 * answered or not, and says at the end how long they took. Run by `workloads.mjs` with the URL of Redis.
 */
import { Redis } from 'ioredis';

const [, , url = ''] = process.argv;
const { hostname: host, port } = new URL(url);
const redis = new Redis({ host, port: Number(port) });
/** @type {number[]} */
let tookMs = [];
let ping = false;

const ticking = setInterval(() => {
  const fromMs = performance.now();
  ping = !ping;
  void (ping ? redis.ping() : redis.get('probe')).then(() => tookMs.push(performance.now() - fromMs));
}, 1);

process.on('disconnect', () => process.exit(1));
process.on('message', (asked) => {
  if (asked === 'begin') {
    tookMs = [];
    process.send?.('begun');
    return;
  }
  clearInterval(ticking);
  process.send?.(tookMs, () => process.exit(0));
});
redis.once('ready', () => process.send?.('ready'));
