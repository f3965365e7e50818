/**
 * The command line. `run` carries out one inside this process, which shows all that a verb says and its exit status
 * without the second that a process takes; `spawn` and `start` take the built one as a shell does. Each runs in a folder
 * of its own, with none of the caller's settings.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { runHere } from './console.ts';
import { testBinary } from './redis-binary.ts';
import { root } from './repository.ts';

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Called {
  /** For stdin; empty otherwise. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Running {
  readonly child: ChildProcess;
  /** Resolves with everything on stdout once it holds the text. Fails when the process ends before. */
  saying(text: string | RegExp): Promise<string>;
  err(): string;
  /** Sends the signal and resolves with the exit status. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Registers the hooks of one test file: a folder to run in, and no process left behind. */
export function useCli() {
  const running = new Set<ChildProcess>();
  let folder = '';

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'duestream-cli-'));
  });
  afterAll(async () => {
    for (const child of running) await ended(child, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  async function launch(args: readonly string[], env: Called['env'] = {}): Promise<ChildProcess> {
    await build();
    const child = spawn(process.execPath, [join(root, 'dist/main.js'), ...args], {
      cwd: folder,
      env: { ...(await plainEnvironment()), ...env },
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    return child;
  }

  return {
    get folder() {
      return folder;
    },
    /** Runs one command to its end, in this process. */
    async run(args: readonly string[], { env, ...called }: Called = {}): Promise<Ended> {
      return runHere(args, { ...called, env: { ...(await plainEnvironment()), ...env }, cwd: folder });
    },
    /** Runs one command to its end, in a process of its own: for what only a process has. */
    async spawn(args: readonly string[], { input = '', env }: Called = {}): Promise<Ended> {
      const child = await launch(args, env);
      const texts = collect(child);
      // A command that reads nothing may be gone before its input is written.
      child.stdin?.on('error', () => undefined).end(input);
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
      return { code, ...texts() };
    },
    /** Starts a command that runs until it is told to end. */
    async start(args: readonly string[], { env }: Called = {}): Promise<Running> {
      const child = await launch(args, env);
      const texts = collect(child);
      return {
        child,
        saying: (text) => untilSaid(child, text, texts),
        err: () => texts().err,
        end: (signal = 'SIGTERM') => ended(child, signal),
      };
    },
  };
}

/** Our own variables would decide what is tested; colours would be in every text. */
async function plainEnvironment(): Promise<Record<string, string>> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(DUESTREAM_|NO_COLOR$|FORCE_COLOR$)/.test(name));
  const env: Record<string, string> = { DUESTREAM_REDIS_SERVER_BIN: await testBinary() };
  for (const [name, value] of kept) if (value !== undefined) env[name] = value;
  return env;
}

function collect(child: ChildProcess): () => { readonly out: string; readonly err: string } {
  let out = '';
  let err = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    err += chunk;
  });
  return () => ({ out, err });
}

function untilSaid(child: ChildProcess, text: string | RegExp, texts: () => { out: string; err: string }) {
  return new Promise<string>((resolve, reject) => {
    const done = () => {
      child.stdout?.off('data', look);
      child.off('close', gone);
    };
    const look = () => {
      const { out } = texts();
      if (typeof text === 'string' ? !out.includes(text) : !text.test(out)) return;
      done();
      resolve(out);
    };
    const gone = () => {
      done();
      reject(new Error(`ended before it said ${text}:\n${texts().out}\n${texts().err}`));
    };
    child.stdout?.on('data', look);
    // The exit can be told before the last lines are read; `close` comes after them.
    child.once('close', gone);
    look();
  });
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  child.kill(signal);
  return closed;
}
