/**
 * What this login may do. `doctor` asks by ACL DRYRUN, which a service may forbid and a proxy may not know; here each command is
 * sent, on keys of the run. What Redis answers besides a refusal does not matter: most of them find nothing.
 */
import { commandsUsed } from '../inspect/doctor/checks.ts';
import { messageOf, oneLine } from '../kernel/errors.ts';
import { CLUSTER_COMMANDS, DISPENSABLE } from '../redis/connection/access.ts';
import { isCluster, membersOf } from '../redis/connection/cluster/members.ts';
import { close, openSubscriber, type Redis, whenReady } from '../redis/connection/connect.ts';
import { scriptOptions } from '../redis/scripts/scripts.ts';
import { forget, PREFIX } from './namespace.ts';
import type { Outcome } from './row.ts';
import type { Stage } from './stage.ts';

type Command = readonly string[];

/** Those that name no key: each server is asked. */
const KEYLESS: readonly string[] = ['ping', 'time', 'client', 'script', 'asking', 'cluster'];
const WITH_SUBCOMMAND: readonly string[] = ['client', 'script', 'xgroup', 'xinfo', 'cluster'];
const SUBSCRIBING: readonly string[] = ['ssubscribe', 'sunsubscribe'];

/** What Redis refused: names of commands with its words, and kinds of places that this login may not touch. */
interface Refused {
  readonly commands: Map<string, string>;
  readonly places: Set<'keys' | 'channels'>;
}

/** Sends every command that clients, daemons and workers send, and loads every script. */
export async function login(stage: Stage): Promise<Outcome> {
  const { redis, namespace } = stage;
  const scripts = Object.values(scriptOptions());
  const ofNode = isCluster(redis) ? CLUSTER_COMMANDS.map((name) => name.split('|')) : [];
  const commands = [...commandsUsed(namespace), ...ofNode];
  const refused: Refused = { commands: new Map(), places: new Set() };
  const sent = commands.filter(([name = '']) => !SUBSCRIBING.includes(name));
  await Promise.all(sent.map((command) => note(refused, command, () => send(redis, command))));
  await subscribe(stage, commands, refused);
  const loads = scripts.map(({ lua }) =>
    note(refused, ['script', 'load'], () => onEach(redis, (node) => node.script('LOAD', lua))),
  );
  await Promise.all(loads);
  // Where it may not, it may not have written either; the row "left" says more.
  await forget(redis, namespace).catch(() => undefined);
  const sorted = { ...refused, commands: new Map([...refused.commands].sort()) };
  return judged(sorted, {
    user: redis.options.username ?? 'default',
    commands: commands.length,
    scripts: scripts.length,
  });
}

function judged(
  refused: Refused,
  { user, commands, scripts }: { readonly user: string; readonly commands: number; readonly scripts: number },
): Outcome {
  const figures = { commands, scripts, refused: refused.commands.size + refused.places.size };
  const missing = [...refused.commands].filter(
    ([name, why]) => DISPENSABLE.includes(name) && !why.startsWith('NOPERM'),
  );
  if (figures.refused === missing.length) {
    const unknown = missing.map(([name]) => name).join(', ');
    const but = unknown === '' ? '' : `; this service has no ${unknown}, which are not needed`;
    return {
      status: 'held',
      saw: `user ${user} may use all ${commands - missing.length} commands and load all ${scripts} scripts${but}`,
      figures,
    };
  }
  const [why] = refused.commands.values();
  const what = [
    ...[...refused.places].map((place) => `${place} that begin with ${PREFIX}`),
    ...(why === undefined ? [] : [`${[...refused.commands.keys()].join(', ')} (${why})`]),
  ];
  const saw = `user ${user} may not use ${what.join('; ')}`;
  const advice = adviceOf(user, refused);
  const isUsable =
    refused.places.size === 0 && [...refused.commands.keys()].every((name) => CAN_DO_WITHOUT.includes(name));
  if (!isUsable) return { status: 'failed', saw, advice, figures };
  return {
    status: 'held',
    saw: `${saw}; without them nudges are not heard and a stop takes up to 2 s`,
    advice,
    figures,
  };
}

/** See docs/how-to/managed-redis.md: what these do is an optimisation. */
const CAN_DO_WITHOUT: readonly string[] = ['client|id', 'client|unblock', 'ssubscribe', 'sunsubscribe'];

async function note(refused: Refused, command: Command, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const message = messageOf(error);
    const [, place] = PLACE.exec(message) ?? [];
    if (place !== undefined) refused.places.add(place === 'key' ? 'keys' : 'channels');
    else if (REFUSAL.test(message)) refused.commands.set(nameOf(command), oneLine(message, 200));
  }
}

/** Redis 7.0: `… to access one of the keys used as arguments`; later: `No permissions to access a key`. */
const PLACE = /^NOPERM .*access .*\b(key|channel)/i;
const REFUSAL = /^NOPERM|unknown (sub)?command|not (allowed|supported|permitted)|disabled|restricted/i;

const nameOf = ([name = '', sub = '']: Command): string => (WITH_SUBCOMMAND.includes(name) ? `${name}|${sub}` : name);

async function send(redis: Redis, [name = '', ...args]: Command): Promise<unknown> {
  if (!KEYLESS.includes(name)) return redis.call(name, ...args);
  return onEach(redis, async (node) => {
    // The connection itself does not wait, and that of somebody else must not be touched.
    if (args[0] === 'unblock') return node.call(name, 'unblock', String(await node.client('ID')));
    return node.call(name, ...args);
  });
}

const onEach = (redis: Redis, ask: (node: Redis) => Promise<unknown>): Promise<unknown> =>
  Promise.all(membersOf(redis).map(ask));

/** A connection that subscribes takes nothing else, so it is another one. */
async function subscribe({ address, signal }: Stage, commands: readonly Command[], refused: Refused): Promise<void> {
  const channel = commands.find(([name]) => name === 'ssubscribe')?.[1];
  if (channel === undefined) return;
  const subscriber = openSubscriber({ redis: address, name: 'prove' });
  try {
    await whenReady(subscriber, undefined, signal);
    await note(refused, ['ssubscribe'], () => subscriber.ssubscribe(channel));
    await note(refused, ['sunsubscribe'], () => subscriber.sunsubscribe(channel));
  } finally {
    close(subscriber);
  }
}

function adviceOf(user: string, { commands, places }: Refused): string {
  const isDenied = places.size > 0 || [...commands.values()].some((why) => why.startsWith('NOPERM'));
  if (!isDenied) return 'this server, or a proxy before it, does not know them: ask its operator, or use another Redis';
  const all = [
    ...(places.size > 0 ? [`~${PREFIX}*`, `&${PREFIX}*`] : []),
    ...[...commands.keys()].map((name) => `+${name}`),
  ];
  return `ACL SETUSER ${user} ${all.join(' ')}`;
}
