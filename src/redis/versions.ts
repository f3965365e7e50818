/**
 * The versions of duestream that live in a namespace. Each process says its own in its heartbeat. Daemons read all heartbeats, and
 * write down in the registry which versions there are; a client and a worker read that with the layout of a queue, and ask nothing for
 * it. Processes of two versions work side by side while somebody updates them; where that lasts, each says so once.
 */
import type { Emitter } from '../job/events.ts';
import { lineOf, version } from '../kernel/version.ts';

/** The field of the registry that has them. A process of 0.2.0 neither writes nor reads it. */
export const VERSIONS_FIELD = ':versions';

const VERSION = /^\d{1,6}\.\d{1,6}\.[0-9A-Za-z.+-]{1,32}$/;
const VERSIONS_MAX = 20;

/** As the registry has them. A process of an old version does not say its own. */
export function versionsOfAll(living: readonly { readonly version?: string | undefined }[]): string {
  const known = living.flatMap((one) => (one.version !== undefined && VERSION.test(one.version) ? [one.version] : []));
  return [...new Set(known)].sort().slice(0, VERSIONS_MAX).join(' ');
}

/** Those of another minor version than this process: they may do what this process does not know, or the other way round. */
export function otherVersions(said: string | null | undefined, own = version): readonly string[] {
  const all = (said ?? '').split(' ').filter((one) => VERSION.test(one));
  return all.filter((one) => lineOf(one) !== lineOf(own)).slice(0, VERSIONS_MAX);
}

/** What to tell of them. */
export const differingText = (others: readonly string[]): string =>
  `duestream ${others.join(', ')} runs beside this process, which has ${version}: bring all processes to one version; "duestream queues workers" says which version each one has`;

/** Tells when processes of another minor version came beside this one, and when they are gone. */
export function createVersionWatch(events: Emitter, own = version): (said: string | null | undefined) => void {
  let known = '';
  return (said) => {
    const others = otherVersions(said, own).join(', ');
    if (others === known) return;
    known = others;
    if (others === '') events.emit('versions.agree', { own });
    else events.emit('versions.differ', { own, others });
  };
}
