/**
 * How the commands of a connection go out and are waited for. The client library writes each command by itself, and arms a
 * timer for each. Both cost more than the rest of a short call:
 *
 *  one write    what one turn of the event loop sends is joined, and goes out when its promises have run. Nothing waits for
 *               a timer, for the loop or for a reply. Commands keep their order: whatever is written past the wire, as a
 *               transaction is, goes after what it holds (`flush`).
 *  one timer    a connection has one, while it waits for replies: it looks at the oldest command. Replies come in the order
 *               of the commands, so none behind it has waited for longer. Every command settles, at its time-out at the latest.
 */
import type { Redis } from 'ioredis';
import { systemClock } from '../../kernel/clock.ts';

/** A command that has no reply yet. */
interface Sent {
  readonly refuse: (error: Error) => void;
  readonly sentMs: number;
  isOver: boolean;
  next: Sent | undefined;
}

/** So many characters are not held back until the end of the turn. */
const FULL = 65_536;

/** The library takes it for one of its pipelines: it writes there what would go to the socket of `destination`. */
export class Wire {
  readonly isPipeline = true;
  readonly destination: { readonly redis: Redis };
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  #text = '';
  #isDue = false;
  #oldest: Sent | undefined;
  #newest: Sent | undefined;
  #isArmed = false;

  constructor(redis: Redis, timeoutMs: number, nowMs = systemClock.monotonicMs) {
    this.#nowMs = nowMs;
    this.destination = { redis };
    this.#timeoutMs = timeoutMs;
    const disconnect = redis.disconnect.bind(redis);
    redis.disconnect = (again) => {
      this.flush();
      disconnect(again);
    };
  }

  /** A command, as the server reads it. */
  write(command: string | Buffer): void {
    if (typeof command !== 'string') {
      this.flush();
      this.destination.redis.stream.write(command);
      return;
    }
    this.#text += command;
    if (this.#text.length > FULL) this.flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      process.nextTick(this.flush);
    }
  }

  readonly flush = (): void => {
    this.#isDue = false;
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    const { stream } = this.destination.redis;
    // After its end nobody reads: the library refuses the commands.
    if (stream.writable) stream.write(text);
  };

  /** A command is sent now. Whoever settles it sets `isOver`. */
  sent(refuse: (error: Error) => void): Sent {
    const sent: Sent = { refuse, sentMs: this.#nowMs(), isOver: false, next: undefined };
    this.#dropAnswered();
    if (this.#newest) this.#newest.next = sent;
    else this.#oldest = sent;
    this.#newest = sent;
    if (!this.#isArmed) this.#lookAfter(this.#timeoutMs);
    return sent;
  }

  #lookAfter(ms: number): void {
    this.#isArmed = true;
    // Commands that wait hold the process by their socket.
    setTimeout(() => this.#look(), Math.max(1, Math.ceil(ms))).unref();
  }

  #look(): void {
    this.#isArmed = false;
    const endMs = this.#nowMs() - this.#timeoutMs;
    for (this.#dropAnswered(); this.#oldest && this.#oldest.sentMs <= endMs; this.#dropAnswered()) {
      this.#oldest.refuse(new Error('Command timed out'));
    }
    if (this.#oldest && !this.#isArmed) this.#lookAfter(this.#oldest.sentMs - endMs);
  }

  #dropAnswered(): void {
    while (this.#oldest?.isOver) {
      const { next }: Sent = this.#oldest;
      // Otherwise one that has grown old would keep all that came after it from the minor collections.
      this.#oldest.next = undefined;
      this.#oldest = next;
    }
    if (!this.#oldest) this.#newest = undefined;
  }
}
