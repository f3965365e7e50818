/**
 * The connections to a cluster, and the map of its slots. Any node that answers draws the map: the seeds of the address
 * at first, later every node that it names. It is drawn anew when a connection comes or goes, when a command is sent on
 * (MOVED), and several times a second for as long as a master of it is not connected or does not answer: that is how a
 * failover is seen.
 *
 *  commands         one connection per master
 *  subscriptions    the same; and while the map is in doubt a guide, since a connection that subscribed cannot be asked
 *
 * A node that froze keeps its connections. When it wakes up as a master that was deposed, it answers the commands that lay
 * there, and takes writes for a moment more. So a node that owes a reply and has said nothing for half a second counts as
 * silent: the other nodes are asked whether it is still a master.
 */
import type { Redis, RedisOptions } from 'ioredis';
import { partitionOf } from '../../../job/job-id.ts';
import { createAbort } from '../../../kernel/abort.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { hostPort, type Place } from '../address.ts';
import { close } from '../dialing.ts';

interface NodesParts {
  readonly seeds: readonly Place[];
  readonly natMap: NatMap;
  /** Its connections subscribe, and then carry no other command. */
  readonly subscribes: boolean;
  readonly open: (place: Place) => Redis;
  /** A connection came up, or the map changed: look whether all is well. */
  readonly onChange: (up: Redis | undefined) => void;
  /** No node answers, and this is why. */
  readonly onTrouble: (error: Error) => void;
}

export interface Nodes {
  /** The connection for a slot. Undefined without a map, or where nobody has that slot. */
  readonly forSlot: (slot: number) => Redis | undefined;
  /** The connection to a place that a node named. */
  readonly at: (place: Place) => Redis;
  /** To each master. */
  readonly all: () => readonly Redis[];
  /** Every one there is. */
  readonly every: () => readonly Redis[];
  readonly isMapped: () => boolean;
  /** The map may be out of date. */
  readonly look: () => void;
  readonly close: () => void;
}

interface State extends NodesParts {
  /** By host and port. */
  readonly connections: Map<string, Redis>;
  /** Why a connection is not up. */
  readonly troubles: Map<Redis, Error>;
  readonly silence: Silence;
  /** Where connections subscribe: who is asked for the map instead of them. */
  guide: Redis | undefined;
  /** How many guides there were: each is dialled at another node. */
  guides: number;
  /** Monotonic ms at which the last one was dialled. */
  guidedMs: number;
  spans: readonly Span[];
  looking: Promise<void> | undefined;
  /** Calls off the next drawing. */
  again: (() => void) | undefined;
  isClosed: boolean;
}

/** While a master is away, the map is drawn this often. */
const UNWELL_MS = 250;
/** Who has not answered or is not there by then is not waited for: others know as much. */
const ANSWER_MS = 500;
/** Many commands are sent on at one moment. */
const LOOK_GAP_MS = 50;

export function createNodes(parts: NodesParts): Nodes {
  const connections = new Map<string, Redis>();
  const none = {
    spans: [],
    looking: undefined,
    again: undefined,
    isClosed: false,
    guide: undefined,
    guides: 0,
    guidedMs: 0,
  };
  const silence = createSilence(() => soon(state, 0));
  const state: State = { ...parts, connections, troubles: new Map(), silence, ...none };
  for (const seed of parts.seeds) connect(state, seed);
  return {
    forSlot(slot) {
      const span = state.spans.find(({ from, to }) => slot >= from && slot <= to);
      return span && connect(state, span.master);
    },
    at: (place) => connect(state, place),
    all: () => mastersOf(state).map((place) => connect(state, place)),
    every: () => [...connections.values()],
    isMapped: () => state.spans.length > 0,
    look: () => soon(state, LOOK_GAP_MS),
    close() {
      state.isClosed = true;
      state.again?.();
      for (const redis of everyOne(state)) close(redis);
    },
  };
}

function connect(state: State, place: Place): Redis {
  const name = hostPort(place);
  const known = state.connections.get(name);
  if (known) return known;
  const redis = state.open(place);
  state.silence.watch(redis);
  state.connections.set(name, redis);
  redis.on('ready', () => {
    state.troubles.delete(redis);
    state.onChange(redis);
    soon(state, 0);
  });
  // One that was left is no news: to draw the map for it may open others that are left in turn, on and on.
  redis.on('close', () => state.connections.get(name) === redis && soon(state, 0));
  redis.on('error', (error: Error) => {
    state.troubles.set(redis, error);
    const all = [...state.connections.values()];
    if (all.every((one) => state.troubles.has(one))) state.onTrouble(error);
  });
  return redis;
}

/** Draws the map after a while, unless that is to happen sooner. */
function soon(state: State, ms: number): void {
  if (state.isClosed || (state.again && ms > 0)) return;
  state.again?.();
  state.again = systemClock.timer(ms, () => {
    state.again = undefined;
    state.looking ??= look(state).finally(() => {
      state.looking = undefined;
      if (!isWell(state)) soon(state, UNWELL_MS);
    });
  });
}

async function look(state: State): Promise<void> {
  for (const redis of everyOne(state).filter((one) => mayAsk(state, one))) {
    const asked = { host: redis.options.host ?? '', port: redis.options.port ?? 0 };
    const reply = await slotsOf(redis);
    const spans = spansOf(reply, { asked, natMap: state.natMap });
    if (state.isClosed) return;
    if (spans.length > 0) return follow(state, spans);
  }
  searchOn(state);
}

function searchOn(state: State): void {
  const places = [...mastersOf(state), ...state.seeds];
  if (state.subscribes && state.spans.length > 0) callGuide(state, places);
  else for (const place of places) connect(state, place);
}

const everyOne = ({ connections, guide }: State) => [...connections.values(), ...(guide ? [guide] : [])];

/** One that is frozen would answer when it wakes up, and name itself. */
const mayAsk = ({ silence }: State, redis: Redis) =>
  redis.status === 'ready' && !redis.condition?.subscriber && !silence.isSilent(redis);

/** What a node says of the map; nothing if it froze just now. */
async function slotsOf(redis: Redis): Promise<unknown> {
  const over = createAbort();
  const asked = redis.call('CLUSTER', 'SLOTS').catch(() => undefined);
  const reply = await Promise.race([asked, systemClock.sleep(ANSWER_MS, over.signal)]);
  over.abort();
  return reply;
}

/** The next one, unless the last is still on its way. It is asked as soon as it is there. A frozen node takes it, and is silent. */
function callGuide(state: State, places: readonly Place[]): void {
  const { guide, guides, guidedMs } = state;
  const isComing = guide?.status === 'connecting' || guide?.status === 'connect';
  if (isComing && systemClock.monotonicMs() - guidedMs < ANSWER_MS) return;
  const place = places[guides % places.length];
  if (guide) close(guide);
  state.guides += 1;
  state.guidedMs = systemClock.monotonicMs();
  state.guide = undefined;
  if (!place) return;
  const next = state.open(place);
  state.guide = next;
  state.silence.watch(next);
  next.on('ready', () => soon(state, 0)).on('close', () => state.guide === next && soon(state, UNWELL_MS));
}

/** Connects to whom the map names, and leaves whom it does not. */
function follow(state: State, spans: readonly Span[]): void {
  state.spans = spans;
  const wanted = new Set<Redis>();
  for (const place of mastersOf(state)) wanted.add(connect(state, place));
  for (const [name, redis] of state.connections) if (!wanted.has(redis)) leave(state, name, redis);
  if (state.guide && isWell(state)) {
    const { guide } = state;
    state.guide = undefined;
    close(guide);
  }
  state.onChange(undefined);
}

/**
 * What was sent is answered still; one that is not connected has nothing to wait for. What a silent one will answer, when
 * it wakes up, must not be believed: it was deposed, and what it acknowledges is lost.
 */
function leave(state: State, name: string, redis: Redis): void {
  state.connections.delete(name);
  state.troubles.delete(redis);
  const isHeard = redis.status === 'ready' && !state.silence.isSilent(redis);
  const bye = isHeard ? redis.quit() : Promise.resolve();
  void bye.catch(() => undefined).finally(() => close(redis));
}

function mastersOf({ spans }: State): readonly Place[] {
  return [...new Map(spans.map(({ master }) => [hostPort(master), master])).values()];
}

function isWell(state: State): boolean {
  return state.spans.length > 0 && [...state.connections.values()].every(({ status }) => status === 'ready');
}

interface Silence {
  /** From now on, until it is closed. */
  readonly watch: (node: Redis) => void;
  readonly isSilent: (node: Redis) => boolean;
}

/** Well below the time after which nodes count each other as down, and above what a busy one takes. */
const SILENT_MS = 500;
/** While it lasts, it is told of this often. */
const EVERY_MS = 250;

/** Of one node. */
interface Wait {
  /** Monotonic ms of the first question since it last said anything; undefined while nothing is owed. */
  sinceMs: number | undefined;
  /** Calls off the next look at it. */
  callOff: (() => void) | undefined;
}

function createSilence(onSilent: () => void): Silence {
  const waits = new WeakMap<Redis, Wait>();

  function lookAfter(wait: Wait, ms: number): void {
    wait.callOff = systemClock.timer(ms, () => {
      wait.callOff = undefined;
      if (wait.sinceMs === undefined) return;
      const leftMs = SILENT_MS - (systemClock.monotonicMs() - wait.sinceMs);
      if (leftMs <= 0) onSilent();
      lookAfter(wait, leftMs > 0 ? leftMs : EVERY_MS);
    });
  }

  return {
    watch(node) {
      const wait: Wait = { sinceMs: undefined, callOff: undefined };
      const heard = () => {
        wait.sinceMs = undefined;
      };
      waits.set(node, wait);
      node.on('connect', () => void node.stream.on('data', heard));
      node.on('close', () => {
        heard();
        wait.callOff?.();
        wait.callOff = undefined;
      });
      const send = node.sendCommand.bind(node);
      node.sendCommand = (command, stream) => {
        if (wait.sinceMs === undefined && node.status === 'ready') {
          wait.sinceMs = systemClock.monotonicMs();
          if (!wait.callOff) lookAfter(wait, SILENT_MS);
        }
        return send(command, stream);
      };
    },
    isSilent(node) {
      const { sinceMs } = waits.get(node) ?? {};
      return sinceMs !== undefined && systemClock.monotonicMs() - sinceMs >= SILENT_MS;
    },
  };
}

// Which node of a cluster has which slot: what CLUSTER SLOTS replies, and what MOVED and ASK say.

/** Redis has so many, and no other number. */
const SLOTS = 16_384;

/** Slots in a row with one master. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly master: Place;
}

export interface Redirection {
  /** `ask`: this once, because the slot moves; `moved`: from now on. */
  readonly kind: 'ask' | 'moved';
  readonly slot: number;
  readonly place: Place;
}

/** Where the addresses that nodes call themselves are found from here. */
export type NatMap = RedisOptions['natMap'];

/** A partition's tag, and so all its keys, is in one slot: CRC16 of what stands in the braces. */
export const slotOf = (key: string): number => partitionOf(key, SLOTS);

/**
 * The masters that a node knows, in its own words: `[[from, to, [host, port, id], replica, …], …]`. A node that does not
 * know its own name says none; then it is the one that was asked.
 */
function spansOf(reply: unknown, { asked, natMap }: { readonly asked: Place; readonly natMap: NatMap }) {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((span: unknown): readonly Span[] => {
    const [from, to, master] = Array.isArray(span) ? span : [];
    const [host, port] = Array.isArray(master) ? master : [];
    if (typeof from !== 'number' || typeof to !== 'number' || typeof port !== 'number') return [];
    const named = typeof host === 'string' && host !== '' ? host : asked.host;
    return [{ from, to, master: natOf({ host: named, port }, natMap) }];
  });
}

/** What an error says about where its command belongs; undefined for every other. */
export function redirectionOf(
  error: unknown,
  { asked, natMap }: { readonly asked: Place; readonly natMap: NatMap },
): Redirection | undefined {
  const [, kind, slot, host, port] = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(messageOf(error)) ?? [];
  if (kind === undefined) return undefined;
  const place = natOf({ host: host || asked.host, port: Number(port) }, natMap);
  return { kind: kind === 'ASK' ? 'ask' : 'moved', slot: Number(slot), place };
}

function natOf(place: Place, natMap: NatMap): Place {
  if (!natMap) return place;
  const name = `${place.host}:${place.port}`;
  return (typeof natMap === 'function' ? natMap(name) : (natMap[name] ?? natMap[hostPort(place)])) ?? place;
}
