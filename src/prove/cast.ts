/** The processes of a run: forked from this package, each in a session of its own, so that Ctrl-C reaches the run alone. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { DuestreamError } from '../kernel/errors.ts';
import { until } from './row.ts';
import type { Orders, Said } from './said.ts';

const ACTOR = fileURLToPath(new URL('./actor.js', import.meta.url));
const READY_WITHIN_MS = 20_000;
const WORDS_MAX = 2000;

export class Actor {
  readonly #child: ChildProcess;
  /** All that it said, in its order. */
  readonly said: Said[] = [];
  #words = '';

  constructor(orders: Orders) {
    this.#child = fork(ACTOR, [], { detached: true, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    this.#child.on('message', (said) => this.said.push(said as Said));
    this.#child.on('error', (error) => this.said.push({ kind: 'failed', why: error.message }));
    this.#child.stderr?.on('data', (chunk) => {
      this.#words = (this.#words + String(chunk)).slice(-WORDS_MAX);
    });
    this.#child.send(orders, () => undefined);
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined;
  }

  /** @throws DuestreamError `failed` when it did not come up; the signal's reason */
  async ready(signal: AbortSignal): Promise<void> {
    const isUp = () => this.isOver || this.said.some(({ kind }) => kind === 'ready' || kind === 'failed');
    const isInTime = await until(isUp, { boundMs: READY_WITHIN_MS, signal });
    const failure = this.said.find((said) => said.kind === 'failed');
    if (isInTime && failure === undefined && !this.isOver) return;
    const why = failure?.why ?? (this.#words.trim() || 'it said nothing');
    throw new DuestreamError('failed', `a process of the run did not come up: ${why}`);
  }

  /** SIGKILL; resolves when it is gone. Twice is fine. */
  async kill(): Promise<void> {
    if (this.isOver) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

export class Cast {
  #all: Actor[] = [];

  /** Begins a process; `ready` of it says when it is up. */
  begin(orders: Orders): Actor {
    const actor = new Actor(orders);
    this.#all.push(actor);
    return actor;
  }

  /** Ends every process that is left. */
  async end(): Promise<void> {
    const all = this.#all;
    this.#all = [];
    await Promise.all(all.map((actor) => actor.kill()));
  }
}
