/**
 * The sender and the receivers of docs/how-to/call-a-url.md, run as they stand there: only addresses are replaced. What the
 * signature is compared with otherwise is in test/unit/signature.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { signWebhook } from '../../../src/dispatch/signature.ts';
import { portSource } from '../../../src/embedded/port.mjs';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';
import { eventually } from '../../support/worker-line.ts';

const freePort = portSource();
const SECRET = `whsec_${randomBytes(32).toString('base64')}`;

let server: TestRedis;
let dir: string;
let client: Client;
let daemon: Daemon;
let running: ChildProcess[] = [];

beforeAll(async () => {
  await build();
  server = await startRedis({ port: true });
  dir = await mkdtemp(join(root, '.cache', 'call-a-url-'));
  client = createClient({ redis: server.url });
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  await daemon.start();
}, 300_000);
afterEach(async () => {
  const ended = running.filter(({ exitCode }) => exitCode === null).map((one) => once(one, 'exit'));
  for (const one of running) one.kill('SIGKILL');
  await Promise.all(ended);
  running = [];
});
afterAll(async () => {
  await client.close();
  await daemon.stop();
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The first block of a language on the page. */
const block = (language: string): string =>
  new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(read('docs/how-to/call-a-url.md'))?.[1] ?? '';

/** The sender of the page, for a queue of its own: what a sender before it held when it was killed is not for this one. */
const senderOf = (queue: string): string =>
  block('ts').replace('<{ order: number }>', '').replace("'hooks'", `'${queue}'`);

/** Runs a text of the page, and collects the lines that it prints. */
async function run(program: string, file: string, text: string, port: number): Promise<readonly string[]> {
  const path = join(dir, file);
  await writeFile(path, text.replaceAll('8080', String(port)).replace('redis://127.0.0.1:6379', server.url));
  const child = spawn(program, [path], { env: { ...process.env, WEBHOOK_SECRET: SECRET, PORT: String(port) } });
  running.push(child);
  const lines: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => lines.push(...chunk.toString().trimEnd().split('\n')));
  child.stderr.on('data', (chunk: Buffer) => lines.push(...chunk.toString().trimEnd().split('\n')));
  return lines;
}

const receivers = [
  ['Node', process.execPath, 'receiver.mjs', 'js', '{ order: 42 }'],
  ['Python', 'python3', 'receiver.py', 'python', "{'order': 42}"],
] as const;

test.each(receivers)('a receiver in %s accepts the call of a job, and refuses one that was changed', async (...row) => {
  const [, program, file, language, told] = row;
  const port = await freePort();
  const received = await run(program, file, block(language), port);
  const url = `http://127.0.0.1:${port}/due`;
  const send = (body: string, secret: string, signedBody = body) =>
    fetch(url, { method: 'POST', body, headers: { ...signWebhook({ id: 'x', body: signedBody }, secret) } }).then(
      ({ status }) => status,
      () => undefined,
    );
  await eventually(() => send('{}', SECRET)).toBeLessThan(300);
  expect(await send('{"order":43}', SECRET, '{"order":42}')).toBe(401);
  expect(await send('{}', `whsec_${randomBytes(32).toString('base64')}`)).toBe(401);

  const queue = `hooks-${language}`;
  const sent = await run(process.execPath, `sender-${language}.mjs`, senderOf(queue), port);
  await client.schedule(queue, { order: 42 }, { id: 'a.b' });
  const line = expect.stringMatching(`^${queue}/a%2Eb/\\S+ ${told.replace(/[{}]/g, '\\$&')}$`);
  // All of it is told where this fails.
  await eventually(async () => ({ received, sent, job: await client.get(queue, 'a.b') })).toMatchObject({
    received: expect.arrayContaining([line]),
    sent: [],
    job: { state: 'done' },
  });
});

test('a job whose receiver refuses it is a dead letter at once', async () => {
  const port = await freePort();
  const received = await run(
    process.execPath,
    'refusing.mjs',
    block('js').replace('WEBHOOK_SECRET', 'NO_SECRET'),
    port,
  );
  const sent = await run(process.execPath, 'sender-refused.mjs', senderOf('hooks-refused'), port);
  await client.schedule('hooks-refused', { order: 1 }, { id: 'a' });
  await eventually(async () => ({ sent, job: await client.get('hooks-refused', 'a') })).toMatchObject({
    sent: [],
    job: { state: 'dead', reason: 'answer 401' },
  });
  expect(received).toEqual([]);
});
