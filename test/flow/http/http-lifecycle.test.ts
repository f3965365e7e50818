/** How the HTTP window opens and closes while clients hang on to it. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createHttp, type Http, type HttpOptions } from '../../../src/http/server.ts';

const open: Http[] = [];
const agents: Agent[] = [];

afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  await Promise.all(open.splice(0).map((http) => http.stop()));
});

function create(given: Partial<HttpOptions> = {}): Http {
  const http = createHttp({
    host: '127.0.0.1',
    port: 0,
    live: () => ({ ok: true, detail: '' }),
    ready: async () => ({ ok: true, detail: '' }),
    scrape: async () => 'duestream_ready 1\n',
    contentType: 'text/plain',
    ...given,
  });
  open.push(http);
  return http;
}

test('a port that is taken is refused, or the next one that is free is taken where that was asked for', async () => {
  const { port } = await create().start();
  await expect(create({ port }).start()).rejects.toThrow(`http.port ${port}: listen EADDRINUSE`);
  // All at once, so that a port which one of them saw free is taken by another.
  const all = await Promise.all(Array.from({ length: 5 }, () => create({ port, orNextPort: true }).start()));
  const ports = all.map((address) => address.port);
  expect(new Set([port, ...ports]).size).toBe(6);
  expect(Math.min(...ports)).toBeGreaterThan(port);
  const answers = await Promise.all(ports.map((each) => fetch(`http://127.0.0.1:${each}/livez`)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
});

test('a keep-alive connection that is busy when stop is called gets its answer and does not hold the server open', async () => {
  const scraping = gate();
  // The grace is long: a stop that waited for it would fail this test by its time-out.
  const http = create({ scrape: () => scraping.enter('late 1\n'), drainMs: 600_000 });
  const { port } = await http.start();
  const agent = new Agent({ keepAlive: true });
  agents.push(agent);
  const answer = ask(agent, port, '/metrics');
  await scraping.entered;
  const stopped = http.stop();
  scraping.open();
  const { response, body } = await answer;
  expect([response.statusCode, response.headers.connection, body]).toEqual([200, 'close', 'late 1\n']);
  await stopped;
});

test('a connection stays open between two requests for longer than a balancer keeps it, or as long as it is told', async () => {
  const agent = new Agent({ keepAlive: true });
  agents.push(agent);
  const kept = async (given: Partial<HttpOptions>) => {
    const { port } = await create(given).start();
    return (await ask(agent, port, '/livez')).response.headers['keep-alive'];
  };
  expect(await kept({})).toBe('timeout=75');
  expect(await kept({ keepAliveMs: 120_000 })).toBe('timeout=120');
  // The time for its headers begins with the first byte of a request, so an idle connection outlives it.
  const { port } = await create({ keepAliveMs: 300 }).start();
  const socket = await dial(port);
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(socket, 'data');
  await once(socket.resume(), 'close');
});

test('an idle keep-alive connection does not hold the server open', async () => {
  const http = create({ drainMs: 600_000 });
  const { port } = await http.start();
  const agent = new Agent({ keepAlive: true });
  agents.push(agent);
  const { response } = await ask(agent, port, '/livez');
  expect(response.headers.connection).toBe('keep-alive');
  await http.stop();
});

test('a client that never ends its request is cut off after the grace', async () => {
  const http = create({ drainMs: 50 });
  const { port } = await http.start();
  const socket = await dial(port);
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\nX-Slow: ');
  const closed = once(socket, 'close');
  // The answer to a second client proves that the first one's bytes have arrived.
  expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
  await http.stop();
  await closed;
});

test('an answer that never comes does not keep stop from ending', async () => {
  const scraping = gate();
  const http = create({ scrape: () => scraping.enter('never\n'), drainMs: 50 });
  const { port } = await http.start();
  const lost = expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow();
  await scraping.entered;
  await http.stop();
  await lost;
  scraping.open();
});

test('after stop nobody is let in', async () => {
  const http = create();
  const { port } = await http.start();
  await http.stop();
  await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
});

test('stop is the same once, twice, and before start; start is the same once and twice', async () => {
  const http = create();
  const [first, second] = await Promise.all([http.start(), http.start()]);
  expect(first).toEqual(second);
  await Promise.all([http.stop(), http.stop()]);
  await http.stop();
  const never = create();
  await never.stop();
  await expect(never.start()).rejects.toMatchObject({ code: 'stopped' });
});

test('a stop right after start leaves nothing listening', async () => {
  const http = create();
  const started = http.start();
  await http.stop();
  const { port } = await started;
  await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
});

test('the port is free again after stop', async () => {
  const http = create();
  const { port } = await http.start();
  await http.stop();
  const next = create({ port });
  expect(await next.start()).toEqual({ host: '127.0.0.1', port });
});

test('a client that does not send its headers is answered 408 and closed', async () => {
  const { port } = await create().start();
  const socket = await dial(port);
  socket.write('GET /livez HTTP/1.1\r\n');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  await once(socket, 'close');
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
});

/** An answer that waits until it is let through, and says when it was asked for. */
function gate() {
  const entered = signal();
  const opened = signal();
  return {
    entered: entered.given,
    open: opened.give,
    async enter(text: string): Promise<string> {
      entered.give();
      await opened.given;
      return text;
    },
  };
}

function signal() {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}

function ask(agent: Agent, port: number, path: string): Promise<{ response: IncomingMessage; body: string }> {
  return new Promise((resolve, reject) => {
    get({ agent, host: '127.0.0.1', port, path }, (response) => {
      let body = '';
      response.on('data', (chunk) => {
        body += String(chunk);
      });
      response.on('end', () => resolve({ response, body }));
    }).on('error', reject);
  });
}

async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}
