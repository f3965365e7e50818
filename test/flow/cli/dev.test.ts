/**
 * Three shells, as in the first five minutes with duestream: `dev` in one, `schedule` in another, handlers in a third.
 * Each is a process of its own in an empty folder, and nothing is told to them but that folder.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { ask } from '../../../src/embedded/ask.mjs';
import { findCli } from '../../../src/embedded/binary.mjs';
import { freePort } from '../../../src/embedded/port.mjs';
import { type Effect, HANDLERS, readEffects } from '../../support/effects.ts';
import { type Line, type Running, useProcesses } from '../../support/processes.ts';
import { testBinary } from '../../support/redis-binary.ts';
import { root } from '../../support/repository.ts';

const processes = useProcesses();
let cwd = '';
let env: Readonly<Record<string, string>> = {};

/** A folder with duestream installed and a handler module, as a user has it. */
beforeEach(async () => {
  cwd = mkdtempSync(join(processes.folder, 'project-'));
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(root, join(cwd, 'node_modules', 'duestream'));
  copyFileSync(HANDLERS, join(cwd, 'handlers.mjs'));
  env = { DUESTREAM_REDIS_SERVER_BIN: await testBinary(), EFFECTS_FILE: join(cwd, 'effects.jsonl') };
});

const launch = (name: string, args: readonly string[]) => processes.launch({ name, args, env, cwd });

/** `dev`, as soon as it has told where everything is. */
async function dev(name = 'dev'): Promise<{ readonly running: Running; readonly told: Line }> {
  const port = await freePort(20_000 + Math.floor(Math.random() * 10_000));
  const running = launch(name, ['dev', '--json', '--redis-port', String(port)]);
  return { running, told: await running.line((line) => 'attached' in line) };
}

async function worker(): Promise<void> {
  await launch('worker', ['worker', 'handlers.mjs', '--queue', 'emails']).logged('started');
}

/** Runs a verb to its end; its answer. */
async function answer(args: readonly string[]): Promise<Line> {
  return launch(args.join(' '), [...args, '--json']).line(() => true);
}

/** Waits for the only start of a job, which is never early. */
async function expectStart(id: string, dueMs: number): Promise<void> {
  const mine = (): readonly Effect[] =>
    readEffects(join(cwd, 'effects.jsonl')).filter((effect) => effect.what === 'start' && effect.id === id);
  await expect.poll(mine).toHaveLength(1);
  expect(mine()[0]?.ms).toBeGreaterThanOrEqual(dueMs);
}

/** A foreign producer: ZADD with redis-cli where there is one, else the same bytes over a socket. */
async function zadd(port: number, dueMs: number, member: string): Promise<void> {
  const command = ['ZADD', 'duestream:v1:{emails:0}:scheduled', String(dueMs), member];
  const cli = await findCli(await testBinary(), process.env.PATH);
  if (cli === undefined) await ask({ port }, command);
  else await promisify(execFile)(cli, ['-p', String(port), ...command]);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const portOf = ({ url }: Line) => Number(new URL(String(url)).port);

describe('duestream dev', () => {
  test('runs a job when it is due that another shell scheduled, with handlers of a third', async () => {
    await dev();
    await worker();
    const data = '{"to":"a@b.c"}';
    const { id, dueMs } = await answer(['schedule', 'emails', '--data', data, '--delay', '1s']);
    await expectStart(String(id), Number(dueMs));
  });

  test('runs a bare member that redis-cli put', async () => {
    const { told } = await dev();
    await worker();
    const dueMs = Date.now() + 300;
    await zadd(portOf(told), dueMs, 'order-1042');
    await expectStart('order-1042', dueMs);
  });

  test('a second time in the same folder attaches to the first', async () => {
    const first = await dev();
    const second = await dev('second dev');
    expect(second.told).toMatchObject({ url: first.told.url, pid: first.told.pid, attached: true });
    expect(await second.running.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(await ask({ port: portOf(first.told) }, ['PING'])).toBe('PONG');
    expect(await answer(['schedule', 'emails', '--delay', '1h'])).toMatchObject({ status: 'scheduled' });
  });

  test('leaves no server behind when it is killed, and the next one has its jobs', async () => {
    const { running, told } = await dev();
    const { id } = await answer(['schedule', 'emails', '--delay', '1h']);
    await running.end('SIGKILL');
    await expect.poll(() => isAlive(Number(told.pid))).toBe(false);
    await dev('next dev');
    expect(await answer(['show', 'emails', String(id)])).toMatchObject({ id, state: 'scheduled' });
  });
});
