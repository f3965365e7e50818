/**
 * The addresses of a name, asked once for each request: what was judged is what is dialled, so a name server that says something
 * else at the next look changes nothing. DNS is asked itself, without `/etc/hosts` and without search domains: there a short
 * name may mean a machine inside. The names that an operator lists are looked up as this machine does it, because they lie there.
 */
import { lookup, Resolver } from 'node:dns/promises';

/** Every address of a name, of both families; none where nobody answers, or there is no such name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

const ANSWER_MS = 2000;

/** By DNS alone. */
export const resolveByDns: Resolve = async (name) => {
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};

/** As this machine looks names up: `/etc/hosts` and search domains too. */
export const resolveAsMachine: Resolve = async (name) => {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    return [];
  }
};

/** RFC 7050: a network that translates IPv6 to IPv4 answers for this name, which has no address of IPv6. */
const TRANSLATED_NAME = 'ipv4only.arpa';

/** The addresses by which the network of this machine says that it translates, most often none. */
export const translatedAddresses = async (): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: 1 });
  return resolver.resolve6(TRANSLATED_NAME).catch(() => []);
};
