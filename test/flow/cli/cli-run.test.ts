/** The verbs that run until a signal: dev, start and worker, each as its own process. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { answersPing } from '../../../src/embedded/ask.mjs';
import { freePort } from '../../../src/embedded/port.mjs';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const cli = useCli();
let server: TestRedis;

beforeAll(async () => {
  server = await startRedis();
  const index = JSON.stringify(join(root, 'dist/index.js'));
  writeFileSync(
    join(cli.folder, 'handlers.mjs'),
    `import { defineHandlers } from ${index};
     const handler = async (job, ctx) => ctx.log.info({}, 'sent to \\u001b[31m' + job.data?.to);
     export default defineHandlers({ emails: handler, letters: handler });`,
  );
});
beforeEach(async () => {
  await (await server.client()).flushall();
});
afterAll(() => server.stop());

const anyPort = () => freePort(20_000 + Math.floor(Math.random() * 10_000));

/** The state of a job once it is the one wanted. */
const reaches = (id: string, state: string, flags: readonly string[] = []) =>
  expect
    .poll(async () => JSON.parse((await cli.run(['show', 'emails', id, '--json', ...flags])).out || '{}').state)
    .toBe(state);

describe('dev', () => {
  test('runs a Redis, a daemon and handlers; other verbs find it; a second one attaches; nothing is left behind', async () => {
    const port = String(await anyPort());
    const dev = await cli.start(['dev', 'handlers.mjs', '--redis-port', port, '--http-port', '0']);
    const said = await dev.saying('Embedded Redis: for development');
    const url = /^Redis +(redis:\/\/127\.0\.0\.1:(\d+)) \(pid \d+, data in \.duestream\/data\)$/m.exec(said);
    expect(said).toMatch(
      /^or +\S*redis-cli -u redis:\/\/127\.0\.0\.1:\d+ ZADD 'duestream:v1:\{emails:0\}:scheduled' \$\(\(/m,
    );
    expect(JSON.parse(readFileSync(join(cli.folder, '.duestream/dev.json'), 'utf8'))).toEqual({
      url: url?.[1],
      pid: dev.child.pid,
      http: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    });

    await cli.run(['schedule', 'emails', '--id', 'a', '--data', '{"to":"a@b.c"}', '--delay', '200ms']);
    await reaches('a', 'done');
    expect(dev.err()).toContain('sent to  [31ma@b.c');
    // Redis knows it before the line is written.
    await expect.poll(() => dev.err()).toMatch(/emails {2}a {2}done in /);

    const second = await cli.start(['dev', '--redis-port', port, '--http-port', '0']);
    expect(await second.saying('No handlers yet')).toContain(`Redis      ${url?.[1]} (of another dev`);
    expect(await second.end()).toBe(0);
    expect(await answersPing({ port: Number(url?.[2]) })).toBe(true);

    expect(await dev.end()).toBe(0);
    expect(existsSync(join(cli.folder, '.duestream/dev.json'))).toBe(false);
    expect(await answersPing({ port: Number(url?.[2]) })).toBe(false);
  });

  test('uses a Redis that was named, and starts none', async () => {
    const dev = await cli.start(['dev', '--json', '--redis', server.url, '--http-port', '0']);
    expect(JSON.parse(await dev.saying('\n'))).toEqual({
      url: server.url,
      attached: false,
      embedded: false,
      http: expect.any(String),
    });
    expect(await dev.end()).toBe(0);
    expect(existsSync(join(cli.folder, '.duestream/dev.json'))).toBe(false);
  });

  test('says that no worker serves a queue whose jobs come due, instead of claiming that one has them', async () => {
    const dev = await cli.start(['dev', '--redis', server.url, '--http-port', '0', '--namespace', 'lonely']);
    await dev.saying('No handlers yet');
    await cli.run(['schedule', 'sms', '--redis', server.url, '--namespace', 'lonely', '--delay', '0s']);
    await expect.poll(dev.err).toContain('sms  no worker serves it: start one with');
    expect(dev.err()).toContain('sms  1 due, on the way');
    expect(await dev.end()).toBe(0);
  });

  test('ends with 64 when the module cannot be loaded, and leaves no server behind', async () => {
    const { code, err } = await cli.spawn(['dev', 'missing.mjs', '--redis-port', String(await anyPort())]);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('missing.mjs cannot be loaded') });
  });
});

describe('start', () => {
  const flags = () => ['--redis', server.url];

  test('logs where it serves health, is ready, and ends with 0 on a signal', async () => {
    const daemon = await cli.start(['start', '--http-port', '0', ...flags()]);
    const log = (await daemon.saying('"msg":"started"')).trimEnd().split('\n');
    const { http } = JSON.parse(log.at(-1) ?? '');
    const ready = await fetch(`http://${http.host}:${http.port}/readyz`);
    expect(ready.status).toBe(200);
    const leaders = async () => JSON.parse((await cli.run(['queues', 'ls', '--json', ...flags()])).out).queues;
    await cli.run(['schedule', 'emails', '--delay', '1d', ...flags()]);
    await expect
      .poll(leaders)
      .toMatchObject([
        { queue: 'emails', scheduled: 1, leaders: [expect.stringMatching(new RegExp(`:${daemon.child.pid}$`))] },
      ]);
    expect(await daemon.end()).toBe(0);
  });

  test('with the role worker runs the handlers of its module', async () => {
    const roles = ['--roles', 'mover,worker', '--module', 'handlers.mjs'];
    const daemon = await cli.start(['start', ...roles, ...flags()]);
    await daemon.saying('"msg":"started"');
    await cli.run(['schedule', 'emails', '--id', 'a', '--data', '{"to":"a@b.c"}', ...flags()]);
    await reaches('a', 'done', flags());
    expect(await daemon.end()).toBe(0);
  });

  test('says what to do when its port is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { code, err } = await cli.spawn(['start', '--http-port', port, ...flags()]);
    other.close();
    expect(code).toBe(78);
    expect(err).toContain(port);
    expect(err).toContain('\nnext: name another port with --http-port, or 0 for any free one\n');
  });

  test('ends with 69 without Redis and with 78 for a bad option', async () => {
    const nowhere = await cli.spawn(['start', '--http-port', '0', '--redis', 'redis://127.0.0.1:1', '--json']);
    expect(nowhere.code).toBe(69);
    expect(JSON.parse(nowhere.err).error.code).toBe('unavailable');
    expect((await cli.run(['start', '--roles', 'boss', ...flags()])).code).toBe(78);
  });
});

describe('worker', () => {
  const flags = () => ['--redis', server.url];

  test('runs the handlers of its module, shows health only when asked, and ends with 0 on a signal', async () => {
    const daemon = await cli.start(['start', '--roles', 'mover', ...flags()]);
    const worker = await cli.start(['worker', 'handlers.mjs', '--concurrency', '2', '--http-port', '0', ...flags()]);
    await daemon.saying('"msg":"started"');
    const log = (await worker.saying('"msg":"started"')).trimEnd().split('\n');
    const { http, roles } = JSON.parse(log.at(-1) ?? '');
    expect(roles).toEqual(['worker', 'http']);
    expect((await fetch(`http://${http.host}:${http.port}/livez`)).status).toBe(200);
    await cli.run(['schedule', 'emails', '--id', 'a', '--data', '{"to":"a@b.c"}', ...flags()]);
    await reaches('a', 'done', flags());
    expect(await worker.end()).toBe(0);
    expect(await daemon.end()).toBe(0);
  });

  test('takes only the queues it is told to', async () => {
    const worker = await cli.start(['worker', 'handlers.mjs', '--queue', 'letters', ...flags()]);
    const log = await worker.saying('"msg":"started"');
    expect(log).not.toContain('"http"');
    const { queues } = JSON.parse((await cli.run(['queues', 'ls', '--json', ...flags()])).out);
    expect(queues.map(({ queue }: { readonly queue: string }) => queue)).toEqual(['letters']);
    expect(await worker.end()).toBe(0);
  });

  test('ends with 64 for a queue that the module does not have, and for a module that is none', async () => {
    const args = ['worker', 'handlers.mjs', '--queue', 'parcels', ...flags()];
    expect(await cli.run(args)).toMatchObject({
      code: 64,
      err: expect.stringContaining('it has emails, letters'),
    });
    writeFileSync(join(cli.folder, 'empty.mjs'), 'export default 5;');
    const empty = await cli.run(['worker', 'empty.mjs', ...flags()]);
    expect(empty).toMatchObject({ code: 64, err: expect.stringContaining('allowed: export default defineHandlers') });
  });
});
