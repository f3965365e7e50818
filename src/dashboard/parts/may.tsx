/**
 * Who looks, and what they may do. A button whose call would be refused (403) is not there: every action of every page asks
 * here, and nowhere else. Its call is refused all the same where somebody makes it.
 */
import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Schemas } from '../api-types.ts';

export type About = Schemas['About'];

/** Undefined until the daemon has said it: then nobody may anything. */
export const Caller = createContext<Pick<About, 'scopes' | 'queues'> | undefined>(undefined);

/** What a call needs, as the reference of the API says it. */
export interface Needed {
  readonly scope: About['scopes'][number];
  /** The queue that the call is about. Left out: it is about all of them, and a token of some queues is refused. */
  readonly queue?: string;
}

export const useMay = (needed: Needed): boolean => useWhatMay()(needed);

/** For what asks about several things at once. */
export function useWhatMay(): (needed: Needed) => boolean {
  const caller = useContext(Caller);
  return ({ scope, queue }) => {
    if (caller === undefined || !caller.scopes.includes(scope)) return false;
    return caller.queues === undefined || (queue !== undefined && caller.queues.includes(queue));
  };
}

export function May({ children, ...needed }: Needed & { readonly children: ComponentChildren }) {
  return <>{useMay(needed) ? children : null}</>;
}
