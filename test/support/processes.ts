/**
 * `duestream` as real processes, for tests that kill. Each gets an environment of only what it needs and a folder of
 * its own to run in; what it says is kept, and shown when its test fails. A process is ended by the pid we were given
 * and by nothing else, after each test in any case, and by its guard if the tests themselves are killed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { spawnGuarded } from '../../src/embedded/guard.mjs';
import { root } from './repository.ts';

/** A line of JSON on standard output. */
export type Line = Readonly<Record<string, unknown>>;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Running {
  readonly name: string;
  readonly pid: number;
  /** The lines of JSON so far. */
  readonly lines: () => readonly Line[];
  /** The first line of JSON that fits, now or later. Rejects when the process ends without one. */
  readonly line: (fits: (line: Line) => boolean) => Promise<Line>;
  /** The first log line with this message, now or later. */
  readonly logged: (message: string) => Promise<Line>;
  readonly exited: Promise<Exit>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Sends the signal and waits for the end. */
  readonly end: (signal: NodeJS.Signals) => Promise<Exit>;
}

export interface Launch {
  /** For people. */
  readonly name: string;
  /** Of the command `duestream`. */
  readonly args: readonly string[];
  /** What runs it. Default: this Node. */
  readonly runtime?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the folder of the test file. */
  readonly cwd?: string;
}

const MAIN = join(root, 'dist', 'main.js');
const SHOWN_LINES = 12;
const KEPT_CHARS = 200_000;

/** Registers the hooks of one test file and returns what starts processes in its tests. */
export function useProcesses() {
  let folder = '';
  let all: (Running & { readonly said: () => string })[] = [];

  beforeAll(async () => {
    await build();
    folder = mkdtempSync(join(tmpdir(), 'due-run-'));
  });
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') for (const process of all) console.error(lastWords(process));
    await Promise.all(all.map((process) => process.end('SIGKILL')));
    all = [];
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function launch({ name, args, runtime = [process.execPath], env = {}, cwd = folder }: Launch): Running {
    const settings = { PATH: process.env.PATH ?? '', HOME: folder, ...env };
    const assigned = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
    // The shell and `env` become the process (exec), so the pid is its own.
    const inFolder = ['-c', 'cd "$0" && exec "$@"', cwd];
    const command = ['env', '-i', ...assigned, ...runtime, MAIN, ...args];
    const child = spawnGuarded({ path: '/bin/sh', args: [...inFolder, ...command] });
    const running = follow(name, child);
    all.push(running);
    return running;
  }

  return {
    get folder() {
      return folder;
    },
    launch,
    /** Starts one that logs, and resolves when it says that it has started. */
    async started(what: Launch): Promise<Running> {
      const running = launch(what);
      await running.logged('started');
      return running;
    },
  };
}

function follow(name: string, child: ReturnType<typeof spawnGuarded>) {
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} never started`);
  const lines: Line[] = [];
  const watchers = new Set<() => void>();
  let said = '';
  let rest = '';
  let exit: Exit | undefined;
  const keep = (chunk: string) => {
    said = (said + chunk).slice(-KEPT_CHARS);
  };
  child.stderr.setEncoding('utf8').on('data', keep);
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    keep(chunk);
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts.flatMap(parsed));
    for (const look of watchers) look();
  });
  let closed = false;
  child.once('exit', (code, signal) => {
    exit = { code, signal };
  });
  // The exit can be told before the last lines are read; `close` comes after them.
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      closed = true;
      resolve({ code, signal });
      for (const look of watchers) look();
    });
  });
  const signal = (which: NodeJS.Signals) => {
    if (exit === undefined) process.kill(pid, which);
  };

  const line = (fits: (line: Line) => boolean) =>
    new Promise<Line>((resolve, reject) => {
      const look = () => {
        const found = lines.find(fits);
        if (found === undefined && !closed) return;
        watchers.delete(look);
        if (found) resolve(found);
        else reject(new Error(`${name} ended without the line that was waited for:\n${said}`));
      };
      watchers.add(look);
      look();
    });

  return {
    name,
    pid,
    said: () => said,
    lines: () => lines,
    line,
    logged: (message: string) => line(({ msg }) => msg === message),
    exited,
    signal,
    end(which: NodeJS.Signals) {
      signal(which);
      return exited;
    },
  };
}

function parsed(text: string): readonly Line[] {
  if (!text.startsWith('{')) return [];
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? [{ ...value }] : [];
  } catch {
    return [];
  }
}

function lastWords({ name, pid, said }: Running & { readonly said: () => string }): string {
  const last = said().trimEnd().split('\n').slice(-SHOWN_LINES);
  return [`--- ${name} (pid ${pid}) said last:`, ...last].join('\n');
}
