/**
 * The target of a queue and the configuration of this daemon → what calls it. Names in the target become what the daemon has for them;
 * a name that it has not is refused with the name alone, never with a value.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config/options.ts';
import { type CallerParts, type CallUrlOptions, createUrlCaller, type UrlCaller } from '../dispatch/call-url.ts';
import type { Certificate, EgressProxy } from '../dispatch/send/dial.ts';
import { isHostOf, type QueueTarget, targetOf, UNREADABLE_TARGET, valueNameOf } from '../job/target.ts';
import { readTargetUrl } from '../job/target-url.ts';
import { hintOf } from '../kernel/checks.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { placesOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';

type Targets = Config['targets'];

/** @throws DuestreamError `bad-config` for a target that this daemon cannot call */
export const createTargetCaller = (target: QueueTarget, targets: Targets, parts: CallerParts): UrlCaller =>
  createUrlCaller(callOptionsOf(target, targets), {
    ...parts,
    host: readTargetUrl(target.url, 'url of the target').host,
    ofJob: ({ target: own }) => (own === undefined ? {} : ownOptionsOf(targetOf(target, own, 'target'), targets)),
    hides: hiddenOf(targets),
  });

/** What a job may say otherwise than its queue. */
function ownOptionsOf(target: QueueTarget, targets: Targets): Partial<CallUrlOptions> {
  checkHost(target, targets);
  const { url, method, headers = {}, contentType } = target;
  return { url, method, headers: sentHeaders(headers, targets), contentType, body: bodyOf(contentType) };
}

const sentHeaders = (headers: Readonly<Record<string, string>>, targets: Targets) =>
  Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, sentValue(text, targets)]));

/** Undefined: as JSON. */
const bodyOf = (contentType: string | undefined) =>
  contentType === undefined || isJson(contentType) ? undefined : asText;

/** A target may send back what it was sent. */
const hiddenOf = ({ secrets, values }: Targets): readonly string[] =>
  [...Object.values(values), ...Object.values(secrets).flat()].toSorted((a, b) => b.length - a.length);

/** @throws DuestreamError `bad-config` */
function callOptionsOf(target: QueueTarget, targets: Targets): CallUrlOptions {
  if (target.url === UNREADABLE_TARGET.url) {
    throw bad('the target cannot be read: a later version of duestream has set it, or somebody else; set it anew');
  }
  const { secret, certificate, headers = {}, contentType, ...plain } = target;
  checkHost(target, targets);
  return {
    ...plain,
    contentType,
    headers: sentHeaders(headers, targets),
    body: bodyOf(contentType),
    ...(secret !== undefined && { secrets: named('secrets', secret, targets.secrets) }),
    ...(certificate !== undefined && {
      certificate: certificateOf(named('certificates', certificate, targets.certificates)),
    }),
    ...networksOf(targets),
  };
}

/** Whoever sets a target may send a value or a signature to hosts of the operator's list alone. @throws DuestreamError `bad-config` */
function checkHost({ url }: QueueTarget, { hosts }: Targets): void {
  const { host } = readTargetUrl(url, 'url of the target');
  if (hosts.length === 0 || isHostOf(host, hosts)) return;
  throw bad(
    `the target leads to ${host}, which targets.hosts of this configuration does not have; it has ${hosts.join(', ')}`,
  );
}

const sentValue = (text: string, { values }: Targets): string => {
  const name = valueNameOf(text);
  return name === undefined ? text : named('values', name, values);
};

function named<T>(section: 'secrets' | 'values' | 'certificates', name: string, all: Readonly<Record<string, T>>): T {
  const found = Object.hasOwn(all, name) ? all[name] : undefined;
  if (found !== undefined) return found;
  const hint = hintOf(name, Object.keys(all));
  const next = hint === '' ? '; add it, and start the daemon again' : ' Else add it, and start the daemon again';
  throw bad(
    `the target names ${name}, and targets.${section} of this configuration has none of that name${hint}${next}`,
  );
}

function certificateOf({ cert, key, hosts }: Targets['certificates'][string]): Certificate {
  return { cert: contentOf('cert', cert), key: contentOf('key', key), hosts };
}

function contentOf(what: string, file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8');
  } catch (error) {
    throw new DuestreamError('bad-config', `targets: the ${what} ${file} cannot be read: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function networksOf({ allow, deny, names, nat64, ca, proxy, proxyResolves }: Targets) {
  const through = proxyOf(proxy, proxyResolves === 'on');
  return {
    allow,
    deny,
    names,
    nat64,
    ...(ca !== '' && { ca: [contentOf('ca', ca)] }),
    ...(through && { proxy: through }),
  };
}

function proxyOf(text: string, resolves: boolean): EgressProxy | undefined {
  if (text === '') return undefined;
  const { hostname: host, port } = new URL(text);
  return { host, port: Number(port || 80), resolves };
}

const isJson = (contentType: string): boolean => /[/+]json(;|$)/.test(contentType);

/** A text as it stands. What is no text stays JSON. */
const asText = ({ data }: { readonly data: unknown }): string =>
  typeof data === 'string' ? data : JSON.stringify(data ?? null);

const bad = (message: string) => new DuestreamError('bad-config', message);

/** Where Redis is, and where it was: a primary that was replaced is still a Redis. */
export function createRedisPlaces(redis: Redis): () => Iterable<string> {
  const seen = new Set<string>();
  return () => {
    for (const place of placesOf(redis)) seen.add(place);
    return seen;
  };
}
