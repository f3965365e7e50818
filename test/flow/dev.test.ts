/**
 * Three shells, as in the first five minutes with duestream: `dev` in one, `schedule` in another, handlers in a third.
 * Each is a process of its own in an empty folder, and nothing is told to them but that folder.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { ask } from '../../src/embedded/ask.mjs';
import { findCli } from '../../src/embedded/binary.mjs';
import { freePort } from '../../src/embedded/port.mjs';
import { type Effect, readEffects } from '../support/effects.ts';
import { type Line, type Running, useProcesses } from '../support/processes.ts';
import { testBinary } from '../support/redis-binary.ts';
import { root } from '../support/repository.ts';
import { HANDLERS } from '../support/siege.ts';

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

function started(): readonly Effect[] {
  try {
    return readEffects(join(cwd, 'effects.jsonl')).filter(({ what }) => what === 'start');
  } catch {
    return [];
  }
}

/** Waits for the only start of a job; how late it was. */
async function lateMs(id: string, dueMs: number): Promise<number> {
  const mine = () => started().filter((effect) => effect.id === id);
  await expect.poll(mine, { timeout: 10_000 }).toHaveLength(1);
  return (mine()[0]?.ms ?? 0) - dueMs;
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

/** What a start may be late here: far above what it is, far below the next look of anything that missed it. */
const SLACK_MS = 900;
const SAFETY_TICK_MS = 1000;

describe('duestream dev', { timeout: 30_000 }, () => {
  test('runs a job when it is due that another shell scheduled, with handlers of a third', async () => {
    await dev();
    await worker();
    const data = '{"to":"a@b.c"}';
    const { id, dueMs } = await answer(['schedule', 'emails', '--data', data, '--delay', '1s']);
    const late = await lateMs(String(id), Number(dueMs));
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(SLACK_MS);
  });

  test('runs a bare member that redis-cli put, within the safety tick', async () => {
    const { told } = await dev();
    await worker();
    const dueMs = Date.now() + 300;
    await zadd(portOf(told), dueMs, 'order-1042');
    const late = await lateMs('order-1042', dueMs);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(SAFETY_TICK_MS + SLACK_MS);
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
    await expect.poll(() => isAlive(Number(told.pid)), { timeout: 10_000 }).toBe(false);
    await dev('next dev');
    expect(await answer(['show', 'emails', String(id)])).toMatchObject({ id, state: 'scheduled' });
  });
});
