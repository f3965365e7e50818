/**
 * The files that others deploy with: what they say of duestream must be true, and what systemd can check of its unit is
 * checked where systemd is.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/config/load.ts';
import { durationMs } from '../../../src/kernel/duration.ts';
import { read, root } from '../../support/repository.ts';

/** No configuration lies there. */
const deploy = join(root, 'deploy');
const { config: defaults } = loadConfig({ env: {}, cwd: deploy });

describe('the compose file', () => {
  const { services, volumes } = parse(read('deploy/compose.yaml'), { merge: true });
  const { daemon, redis, worker } = services;

  test('has a Redis that keeps what it acknowledged and evicts nothing', () => {
    expect(redis.image).toBe('redis:7');
    expect(redis.command.join(' ')).toBe(
      'redis-server --appendonly yes --appendfsync everysec --maxmemory-policy noeviction',
    );
    expect(redis.volumes).toEqual(['redis-data:/data']);
    expect(volumes).toHaveProperty('redis-data');
    expect(redis.healthcheck.test).toEqual(['CMD', 'redis-cli', 'ping']);
  });

  test('has two daemons and a worker that wait for Redis, without rights and without a root that can be written', () => {
    expect(daemon.deploy.replicas).toBe(2);
    for (const service of [daemon, worker]) {
      expect(service.depends_on).toEqual({ redis: { condition: 'service_healthy' } });
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    }
  });

  test('gives running jobs the time to end', () => {
    for (const { stop_grace_period: grace } of [daemon, worker]) {
      expect(durationMs(grace, 'grace')).toBeGreaterThan(defaults.worker.shutdownMs);
    }
  });

  test('sets only options that there are, and a token where the address needs one', () => {
    const { DUESTREAM_HTTP__TOKEN: token, ...rest } = daemon.environment;
    expect(token).toMatch(/^\$\{DUESTREAM_TOKEN:\?/);
    const env = { ...rest, DUESTREAM_HTTP__TOKEN: 'a-token-of-16-or-more' };
    expect(loadConfig({ env, cwd: deploy }).config.http.host).toBe('0.0.0.0');
    expect(() => loadConfig({ env: rest, cwd: deploy })).toThrow('http.token is empty');
    expect(loadConfig({ env: worker.environment, cwd: deploy }).config.worker.concurrency).toBe(50);
  });

  test('mounts handlers that exist and need nothing but what the image has', () => {
    const [mounted, place] = worker.volumes[0].split(':');
    expect(place).toBe('/app/handlers');
    expect(worker.command).toEqual(['worker', 'handlers/handlers.mjs', '--http-port', String(defaults.http.port)]);
    const handlers = read(join('deploy', mounted, 'handlers.mjs'));
    const imports = [...handlers.matchAll(/from '([^']+)'/g)].map(([, from]) => from);
    expect(imports.filter((from) => !/^(duestream|node:.*|\.\/.*)$/.test(from ?? ''))).toEqual([]);
  });
});

describe('the systemd unit', () => {
  const unit = read('deploy/duestream.service');
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

  test('runs the command as nobody in particular and lets running jobs end', () => {
    expect(value('ExecStart')).toBe('/usr/bin/duestream start');
    expect(value('DynamicUser')).toBe('yes');
    expect(value('ProtectSystem')).toBe('strict');
    expect(Number(value('TimeoutStopSec')) * 1000).toBeGreaterThan(defaults.worker.shutdownMs);
  });

  test('sets only options that there are', () => {
    const folder = mkdtempSync(join(tmpdir(), 'due-unit-'));
    try {
      writeFileSync(join(folder, 'redis-url'), 'redis://user:secret@redis.internal:6379\n');
      const [name = '', path = ''] = value('Environment')?.split('=') ?? [];
      const env = { [name]: path.replace('%d', folder) };
      expect(loadConfig({ env, cwd: folder }).config.redis.url).toBe('redis://user:secret@redis.internal:6379');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('is one that systemd understands and calls well protected, where there is a systemd', () => {
    const analyze = ['/usr/bin/systemd-analyze', '/bin/systemd-analyze'].find((path) => existsSync(path));
    if (analyze === undefined || versionOf(analyze) < 250) return;
    const folder = mkdtempSync(join(tmpdir(), 'due-unit-'));
    const file = join(folder, 'duestream.service');
    try {
      // The command is not installed here; node stands for it.
      writeFileSync(file, unit.replace('/usr/bin/duestream', process.execPath));
      const verified = spawnSync(analyze, ['verify', '--man=no', file], { encoding: 'utf8' });
      // It also speaks of what else is wrong with this machine's units.
      const complaints = `${verified.stdout}${verified.stderr}`
        .split('\n')
        .filter((line) => line.includes('duestream'));
      expect(complaints).toEqual([]);
      // Exposure from 0 to 100; fails above the threshold.
      const options = ['security', '--offline=true', '--no-pager', '--threshold=20', file];
      expect(spawnSync(analyze, options, { encoding: 'utf8' })).toMatchObject({ status: 0 });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

function versionOf(analyze: string): number {
  return Number(/^systemd (\d+)/.exec(spawnSync(analyze, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? 0);
}
