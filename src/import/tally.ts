/**
 * What an import did, counted. Each job that was found is counted once more, under what became of it, so that the numbers of a
 * place add up: found = imported + there + covered + left.
 */

/** The jobs of one place there. */
export interface Counts {
  readonly found: number;
  /** New here; in a dry run: they would be. */
  readonly imported: number;
  /** The same call was made before. */
  readonly there: number;
  /** The next job of a scheduler: its schedule makes it. */
  readonly covered: number;
  /** They stay where they are. */
  readonly left: number;
}

/** What is to be said of a job: a kind, by which jobs are counted, and the words; those of the first job are shown. */
export interface Said {
  readonly kind: string;
  readonly text: string;
}

/** Jobs of which the same is to be said. */
export interface Group {
  readonly text: string;
  readonly count: number;
  /** The first few, by their ids there. */
  readonly ids: readonly string[];
}

/** The counts by place, why jobs are left, and what is another thing here. */
export interface Sums {
  readonly places: Readonly<Record<string, Counts>>;
  readonly left: readonly Group[];
  readonly notes: readonly Group[];
}

const IDS_MAX = 3;
const NOTHING: Counts = { found: 0, imported: 0, there: 0, covered: 0, left: 0 };

export type Fate = Exclude<keyof Counts, 'found'>;

export class Tally {
  readonly #places = new Map<string, Counts>();
  readonly #left = new Map<string, Group>();
  readonly #notes = new Map<string, Group>();

  /** Jobs of a place that became something. */
  add(place: string, fate: Fate, count = 1): void {
    const before = this.#places.get(place) ?? NOTHING;
    this.#places.set(place, { ...before, found: before.found + count, [fate]: before[fate] + count });
  }

  /** A job, or so many, that stay. */
  leave(place: string, why: Said, { id, count = 1 }: { readonly id?: string; readonly count?: number }): void {
    this.add(place, 'left', count);
    enter(this.#left, why, { id, count });
  }

  /** Something of a job is another thing here. */
  note(said: Said, id: string): void {
    enter(this.#notes, said, { id, count: 1 });
  }

  sums(): Sums {
    return {
      places: Object.fromEntries(this.#places),
      left: [...this.#left.values()],
      notes: [...this.#notes.values()],
    };
  }
}

function enter(
  groups: Map<string, Group>,
  { kind, text }: Said,
  { id, count }: { readonly id: string | undefined; readonly count: number },
): void {
  const before = groups.get(kind) ?? { text, count: 0, ids: [] };
  const ids = id !== undefined && before.ids.length < IDS_MAX ? [...before.ids, id] : before.ids;
  groups.set(kind, { text: before.text, count: before.count + count, ids });
}
