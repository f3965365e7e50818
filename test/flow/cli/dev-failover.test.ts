/** `dev --cluster` and `dev --sentinel` as processes: jobs run in another process's handlers, before and after a failover. */
import { copyFileSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive } from '../../../src/embedded/lock.mjs';
import { HANDLERS, readEffects } from '../../support/effects.ts';
import { type Line, useProcesses } from '../../support/processes.ts';
import { testBinary } from '../../support/redis-binary.ts';
import { root } from '../../support/repository.ts';

const processes = useProcesses();

test.each([['--cluster'], ['--sentinel']])(
  'dev %s runs jobs, also after its primary was killed, and leaves nothing',
  async (flag) => {
    const cwd = mkdtempSync(join(processes.folder, 'project-'));
    mkdirSync(join(cwd, 'node_modules'));
    symlinkSync(root, join(cwd, 'node_modules', 'duestream'));
    copyFileSync(HANDLERS, join(cwd, 'handlers.mjs'));
    const effects = join(cwd, 'effects.jsonl');
    const env = { DUESTREAM_REDIS_SERVER_BIN: await testBinary(), EFFECTS_FILE: effects };
    const launch = (args: readonly string[]) => processes.launch({ name: args.join(' '), args, env, cwd });
    const port = String(17_000 + Math.floor(Math.random() * 5000));
    const dev = launch(['dev', 'handlers.mjs', flag, '--json', '--redis-port', port]);
    const told = await dev.line((line) => 'attached' in line);
    const servers = told.servers as readonly Line[];
    const schedule = (id: string) => {
      const verb = launch(['schedule', 'emails', '--id', id, '--delay', '0s', '--json']);
      return verb.exited.then(({ code }) => code);
    };
    const started = () => readEffects(effects).flatMap(({ what, id }) => (what === 'start' ? [id] : []));
    expect(await schedule('before')).toBe(0);
    await expect.poll(started).toContain('before');
    process.kill(Number(servers[0]?.pid), 'SIGKILL');
    await expect.poll(() => schedule('after')).toBe(0);
    await expect.poll(started).toContain('after');
    expect(await dev.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(servers.filter(({ pid }) => isAlive(Number(pid)))).toEqual([]);
  },
);
