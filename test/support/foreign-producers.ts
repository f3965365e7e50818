/** The foreign producers of the examples as programs: each call runs one to its end and returns what it printed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findPython, type Program } from './python.ts';
import type { TestRedis } from './redis.ts';
import { findRedisCli } from './redis-cli.ts';
import { root } from './repository.ts';

const run = promisify(execFile);
const folder = join(root, 'examples', 'foreign-producers');

/** What both can do. Data is JSON. */
export interface ForeignProducer {
  readonly put: (id: string, delayMs: number) => Promise<string>;
  readonly schedule: (id: string, delayMs: number, data: string, name: string) => Promise<string>;
  /** At a due of its own, so that it can be repeated. */
  readonly repeat: (id: string, dueMs: number, data: string, replace?: boolean) => Promise<string>;
  readonly withHeaders: (id: string, dueMs: number, headers: Readonly<Record<string, string>>) => Promise<string>;
  readonly withPriority: (id: string, priority: 'high' | 'low') => Promise<string>;
  readonly cancel: (id: string, bare: boolean) => Promise<string>;
}

export type ForeignProducers = Awaited<ReturnType<typeof openForeignProducers>>;

/** `queue` says which one the next call is for. */
export async function openForeignProducers(server: TestRedis, queue: () => string) {
  const [python, redisCli] = await Promise.all([findPython(), findRedisCli()]);

  const inPythonAs = (url: string, verb: string, id: string, ...options: string[]) =>
    call(python, [join(folder, 'producer.py'), '--redis', url, verb, queue(), id, ...options]);
  const inPython = (verb: string, id: string, ...options: string[]) => inPythonAs(server.url, verb, id, ...options);

  function inShell(verb: string, id: string, args: readonly string[], settings: NodeJS.ProcessEnv = {}) {
    const env = { ...process.env, REDIS_CLI: `${redisCli} -s ${server.socketPath}`, ...settings };
    return call({ path: join(folder, 'producer.sh'), env }, [verb, queue(), id, ...args]);
  }

  const byPython: ForeignProducer = {
    put: (id, delayMs) => inPython('put', id, '--in', String(delayMs)),
    schedule: (id, delayMs, data, name) =>
      inPython('schedule', id, '--in', String(delayMs), '--data', data, '--name', name),
    repeat: (id, dueMs, data, replace = false) =>
      inPython('schedule', id, '--at', String(dueMs), '--data', data, '--mode', replace ? 'replace' : 'keep'),
    withHeaders: (id, dueMs, headers) =>
      inPython(
        'schedule',
        id,
        '--at',
        String(dueMs),
        '--data',
        '1',
        ...Object.entries(headers).flatMap((one) => ['--header', one.join('=')]),
      ),
    withPriority(id, priority) {
      const [, group, own = id] = /^\{(.+)\}(.+)$/.exec(id) ?? [];
      return inPython('schedule', own, ...(group === undefined ? [] : ['--group', group]), '--priority', priority);
    },
    cancel: (id, bare) => inPython('cancel', id, ...(bare ? ['--bare'] : [])),
  };
  const byShell: ForeignProducer = {
    put: (id, delayMs) => inShell('put', id, [String(delayMs)]),
    schedule: (id, delayMs, data, name) => inShell('schedule', id, [String(delayMs), data, name]),
    repeat: (id, dueMs, data, replace = false) =>
      inShell(replace ? 'replace' : 'schedule', id, ['0', data], { DUE: String(dueMs) }),
    withHeaders: (id, dueMs, headers) =>
      inShell('schedule', id, ['0', '1'], { DUE: String(dueMs), HEADERS: String(new URLSearchParams(headers)) }),
    withPriority: (id, priority) => inShell('schedule', id, ['0'], { PRIORITY: priority }),
    cancel: (id, bare) => inShell(bare ? 'unput' : 'cancel', id, []),
  };

  return {
    of: { Python: byPython, 'redis-cli': byShell },
    inPython,
    /** As somebody else: the URL carries the name and the password. */
    inPythonAs,
    /** Lines of Python with a producer `p` and the name of the `queue`. */
    inPythonCode(lines: readonly string[]): Promise<string> {
      const opening = ['import sys, json, redis, producer', 'url, queue, lua = sys.argv[1:]'];
      const made = 'p = producer.Producer(redis.Redis.from_url(url), lua=lua)';
      const env = { ...python.env, PYTHONPATH: [folder, python.env.PYTHONPATH].filter(Boolean).join(':') };
      const code = [...opening, made, ...lines].join('\n');
      return call({ ...python, env }, ['-c', code, server.url, queue(), join(root, 'lua')]);
    },
    checkVectors: () => call(python, [join(folder, 'check_vectors.py'), join(root, 'test/golden/wire-v1.json')]),
  };
}

/** @throws Error with what the program wrote, when it fails */
async function call(program: Program, args: readonly string[]): Promise<string> {
  const { stdout } = await run(program.path, [...args], { env: program.env, timeout: 20_000 });
  return stdout.trim();
}
