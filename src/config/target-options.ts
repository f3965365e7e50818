/**
 * What a daemon with the role `dispatcher` may call, and what it has for that: secrets, values of headers and certificates, by the names
 * that targets of queues have. None of it goes into Redis. In the environment a map is JSON, and `…_FILE` names a file with it.
 */
import { z } from 'zod';
import { TARGET_NAME } from '../job/target.ts';
import { isNetwork } from '../kernel/networks.ts';
import { option, whole } from './table.ts';

const LIST_MAX = 256;
const NAMES_MAX = 1000;

const networks = (doc: string) =>
  option(z.array(z.string().refine(isNetwork)).max(LIST_MAX).default([]), {
    kind: 'list',
    doc,
    allowed: `at most ${LIST_MAX} addresses or networks such as 10.20.0.0/16, fd00:1::/32`,
  });

const hosts = (doc: string) =>
  option(
    z
      .array(z.string().regex(/^(\*|(\*\.)?[a-z0-9_.:-]{1,253})$/))
      .max(LIST_MAX)
      .default([]),
    { kind: 'list', doc, allowed: `at most ${LIST_MAX} hosts in lower case such as api.example.com, *.example.com` },
  );

/** What belongs to a name. */
type Named<T> = Readonly<Record<string, T>>;

/** A map of names, as an object or as JSON; undefined for what is none. */
function mapIn(given: unknown): Named<unknown> | undefined {
  const read = typeof given === 'string' ? parsed(given) : given;
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return undefined;
  const names = Object.keys(read);
  return names.length <= NAMES_MAX && names.every((name) => TARGET_NAME.test(name)) ? { ...read } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A map whose values are read by `read`; undefined of one value refuses all. */
const mapOf = <Given, T>(read: (value: unknown) => T | undefined) =>
  z
    .custom<Named<Given>>((given) =>
      Object.values(mapIn(given) ?? { none: undefined }).every((value) => read(value) !== undefined),
    )
    .transform((given): Named<T> => {
      const entries = Object.entries(mapIn(given) ?? {}).flatMap(([name, value]) => {
        const found = read(value);
        return found === undefined ? [] : [[name, found] as const];
      });
      return Object.fromEntries(entries);
    })
    .default({});

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 8192;

/** One secret, or several with the newest first. */
function secretsIn(value: unknown): readonly string[] | undefined {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  return all.length > 0 && all.length <= 10 && all.every(isText) ? all : undefined;
}

const valueIn = (value: unknown): string | undefined =>
  isText(value) && /^[\x20-\x7e]+$/.test(value) ? value : undefined;

/** The files of a certificate, and to which hosts it is shown. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  readonly hosts: readonly string[];
}

function certificateIn(value: unknown): CertificateFiles | undefined {
  const { cert, key, hosts: shownTo }: Partial<Record<keyof CertificateFiles, unknown>> = Object(value);
  const isHosts = Array.isArray(shownTo) && shownTo.length > 0 && shownTo.every(isText);
  return isText(cert) && isText(key) && isHosts ? { cert, key, hosts: shownTo } : undefined;
}

const NAMED = `at most ${NAMES_MAX} names of A-Z a-z 0-9 . _ -`;

export const targetOptions = z.strictObject({
  hosts: hosts(
    'The hosts that a dispatcher may call, whatever the target of a queue says; empty: those that the target says.',
  ),
  allow: networks(
    'Networks beyond the public internet that may be called. An address of this machine must be named alone.',
  ),
  deny: networks('Networks that may not be called, whatever else is said.'),
  names: hosts(
    'Local names that may be called, such as *.svc.cluster.local; their addresses must be in targets.allow.',
  ),
  nat64: option(
    z
      .array(z.string().refine((text) => isNetwork(text) && text.endsWith('/96')))
      .max(LIST_MAX)
      .default([]),
    {
      kind: 'list',
      doc: 'The prefixes by which this network reaches IPv4 over IPv6.',
      allowed: `at most ${LIST_MAX} prefixes of 96 bits such as 64:ff9b::/96`,
    },
  ),
  secrets: option(mapOf<string | readonly string[], readonly string[]>(secretsIn), {
    kind: 'text',
    doc: 'Secrets that sign requests, by the names that targets have. Of several the newest stands first: requests are signed with each.',
    allowed: `${NAMED}, each with a text of whsec_ and base64, or a list of at most 10`,
    secret: 'value',
  }),
  values: option(mapOf<string, string>(valueIn), {
    kind: 'text',
    doc: 'Values of headers that nobody else may know, by the names that targets have: a header with the value $crm gets the one of crm.',
    allowed: `${NAMED}, each with a text of printable ASCII`,
    secret: 'value',
  }),
  certificates: option(mapOf<CertificateFiles, CertificateFiles>(certificateIn), {
    kind: 'text',
    doc: 'Certificates that are shown to their hosts, by the names that targets have.',
    allowed: `${NAMED}, each with cert and key, the paths of files in PEM, and hosts`,
  }),
  ca: option(z.string().max(4096).default(''), {
    kind: 'text',
    doc: 'The file with the certificates of the authorities that targets are checked with, instead of those that Node.js trusts.',
    allowed: 'a path of at most 4096 characters, or empty',
  }),
  proxy: option(
    z
      .string()
      .regex(/^(http:\/\/[A-Za-z0-9._-]{1,253}:\d{1,5})?$/)
      .default(''),
    {
      kind: 'text',
      doc: 'The proxy by which all requests leave, by CONNECT. HTTP_PROXY is never read.',
      allowed: 'http://, a host and a port, or empty',
    },
  ),
  proxyResolves: option(z.enum(['on', 'off']).default('off'), {
    kind: 'text',
    doc: 'Whether targets.proxy gets the name of the target and judges where it leads; off: it gets the address that was judged here.',
    allowed: 'on, off',
  }),
  concurrency: whole(200, {
    min: 1,
    max: 10_000,
    doc: 'How many requests of a queue one dispatcher has under way at a time; never more than targets.perHost.',
  }),
  perHost: whole(50, {
    min: 1,
    max: 10_000,
    doc: 'How many requests to one host one dispatcher has under way at a time, of all its queues. A job beyond that is put aside for 1 to 2 s, and uses no attempt.',
  }),
});
