/** The table of places: rail, tabs, crumbs and keys follow from it. */
import type { IconName } from './parts/icon.tsx';
import type { Needed } from './parts/may.tsx';
import { words } from './words/words.ts';

/** A page by the word in its address; its name is in the words. */
export type Place = keyof typeof words.places;

export const isPlace = (name: string): name is Place => Object.hasOwn(words.places, name);

/** Where one can go, and what the page asks for there needs. `key` leads there behind a `g`. */
export interface Way {
  readonly name: Place;
  readonly icon: IconName;
  readonly key: string;
  readonly needs?: Needed;
  /** Among the tabs of a narrow window: there is room for few. Its sheet has the others. */
  readonly isTab?: true;
  /** Asked now and then: it stands below those of every hour. */
  readonly isRare?: true;
}

export const PLACES: readonly Way[] = [
  { name: 'now', icon: 'now', key: 'n', isTab: true },
  { name: 'jobs', icon: 'jobs', key: 'j', isTab: true },
  { name: 'dead', icon: 'dead', key: 'd', isTab: true },
  { name: 'schedules', icon: 'schedules', key: 's' },
  { name: 'workers', icon: 'workers', key: 'w', needs: { scope: 'read' } },
  { name: 'simulate', icon: 'simulate', key: 'm', needs: { scope: 'read' }, isRare: true },
  { name: 'slo', icon: 'slo', key: 'o', isRare: true },
  { name: 'audit', icon: 'audit', key: 'a', needs: { scope: 'admin' }, isRare: true },
];
