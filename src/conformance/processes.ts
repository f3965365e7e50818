/** The processes of a run: daemons, forked from this package, and the program that is tried, in a group of its own. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { letGo, spawnForeign } from '../embedded/guard.mjs';
import { DuestreamError } from '../kernel/errors.ts';
import type { DaemonOrders, DaemonSaid } from './orders.ts';
import type { Happenings } from './record.ts';

const DAEMON = fileURLToPath(new URL('./daemon-process.js', import.meta.url));
/** Of what a program writes to its standard error so much is kept, for the report. */
const WORDS_MAX = 2000;

export class DaemonProcess {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** @throws DuestreamError `failed` when it does not come up */
  static async start(orders: DaemonOrders): Promise<DaemonProcess> {
    const child = fork(DAEMON, [], { detached: true, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    let words = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-WORDS_MAX);
    });
    const said = new Promise<DaemonSaid>((resolve) => {
      child.once('message', (message: DaemonSaid) => resolve(message));
      child.once('exit', () => resolve({ kind: 'failed', why: words.trim() || 'it ended' }));
    });
    child.send(orders, () => undefined);
    const answer = await said;
    if (answer.kind === 'ready') return new DaemonProcess(child, answer.url);
    child.kill('SIGKILL');
    throw new DuestreamError('failed', `a daemon of the run did not come up: ${answer.why}`);
  }

  /** SIGKILL; resolves when it is gone. Twice is fine. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

interface ProgramInput {
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly happened: Happenings;
  /** Tells several of one trial apart. */
  readonly number: number;
}

/** A program is a line for the shell, so it is a group of processes: signals go to all of them. None of it outlives the run. */
export class Program {
  readonly #child: ReturnType<typeof spawnForeign>;
  #words = '';

  constructor({ command, env, happened, number }: ProgramInput) {
    this.#child = spawnForeign(command, env);
    // A shell that is not there is an end like any other.
    this.#child.once('error', (error) => {
      this.#words = error.message;
    });
    let rest = '';
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const text of lines) happened.printed(number, text);
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#words = (this.#words + chunk.toString()).slice(-WORDS_MAX);
    });
  }

  /** What it wrote to its standard error last. */
  get words(): string {
    return this.#words.trim();
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The whole group is gone.
    }
  }

  async end(): Promise<void> {
    const gone = this.isOver ? undefined : once(this.#child, 'exit');
    // A child of it may live when it is over itself.
    this.signal('SIGKILL');
    letGo(this.#child);
    await gone;
  }
}
