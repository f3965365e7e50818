/**
 * The whole demo, shortened: real daemons, workers, mails and kills, with nothing faked. It judges itself by its exit
 * status; here we make sure that it says what it did, leaves nothing behind, and can be interrupted.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { testBinary } from '../../support/redis-binary.ts';
import { root } from '../../support/repository.ts';

const DEMO = join(root, 'examples', 'payment-reminders', 'demo.mjs');

let child: ChildProcess | undefined;
afterEach(async () => {
  if (child && child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
});

async function start() {
  const env = { ...process.env, DUESTREAM_REDIS_SERVER_BIN: await testBinary() };
  const running = spawn(process.execPath, [DEMO, '--quick'], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  child = running;
  let output = '';
  for (const stream of [running.stdout, running.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const exited = once(running, 'exit').then(([code]: (number | null)[]) => code);
  return { running, exited, output: () => output };
}

/** The pids that the demo says it started. */
const pidsIn = (output: string) =>
  [...output.matchAll(/\(pid ([\d, ]+)\)/g)].flatMap(([, list = '']) => list.split(', ').map(Number));

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('the demo', () => {
  test('keeps every promise while a worker and the leader are killed', async () => {
    const { exited, output } = await start();
    expect(await exited, output()).toBe(0);
    const said = output();
    expect(said).toContain('351 rows, 324 payments, 12 repeated, 15 malformed');
    expect(said).toContain('line 9: bad amount in INR: "12,5O"');
    expect(said).toMatch(/SIGKILL worker \d \(pid \d+\) with [1-9]\d* jobs? running: \w/);
    expect(said).toMatch(/SIGKILL daemon \d \(pid \d+\), the leader of the e-mails/);
    expect(said).toMatch(/daemon \d leads the e-mails in term \d+, \d+\.\d s later/);
    expect(said.match(/\[ok\]/g)).toHaveLength(12);
    expect(said).toContain('All checks passed.');
    expect(pidsIn(said).filter(isAlive)).toEqual([]);
  });

  test('takes everything down when it is interrupted', async () => {
    const { running, exited, output } = await start();
    await expect.poll(output).toMatch(/scheduled \d+ reminders/);
    running.kill('SIGINT');
    expect(await exited).toBe(130);
    expect(output()).toContain('The demo ended early: interrupted by SIGINT');
    const pids = pidsIn(output());
    expect(pids).toHaveLength(6);
    expect(pids.filter(isAlive)).toEqual([]);
    const folder = /--config (\S+)\/duestream\.yaml/.exec(output())?.[1];
    expect(folder && existsSync(join(root, folder))).toBe(false);
  });
});
