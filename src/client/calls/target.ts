/**
 * Which things a change means: one by its id, a list of ids, or all that a filter means. The kind of the target decides which
 * options the call takes, and the type of its result.
 */
import { noOption } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';

export type TargetKind = 'id' | 'ids' | 'filter';

const WORDS: Readonly<Record<TargetKind, string>> = {
  id: 'one id',
  ids: 'a list of ids',
  filter: 'a filter',
};

/** The options of a call, by the kind of its target. */
export type OptionNames = Readonly<Record<TargetKind, readonly string[]>>;

/** @throws DuestreamError `bad-input` for an option that there is not, or that makes no sense for this kind of target */
export function checkTargetOptions(options: object, names: OptionNames, { kind, owner }: Targeted): void {
  const known = names[kind];
  for (const [name, value] of Object.entries(options)) {
    if (known.includes(name)) continue;
    const goesWith = (['id', 'ids', 'filter'] as const).filter((other) => names[other].includes(name));
    if (goesWith.length > 0 && value === undefined) continue;
    if (goesWith.length === 0) throw noOption(name, known, owner, 'bad-input');
    const others = goesWith.map((other) => WORDS[other]).join(' or ');
    throw new DuestreamError(
      'bad-input',
      `${name} is given to ${owner} with ${WORDS[kind]}; it goes with ${others}; allowed: ${known.join(', ') || 'none'}`,
    );
  }
}

export interface Targeted {
  readonly kind: TargetKind;
  /** The method. */
  readonly owner: string;
}

const LIST_MAX = 1_000_000;

/** @throws DuestreamError `bad-input` unless it is a list of at most a million. */
export function checkList(list: readonly unknown[], what: string): void {
  if (Array.isArray(list) && list.length <= LIST_MAX) return;
  const given = Array.isArray(list) ? `${list.length} long` : `of type ${typeof list}`;
  throw new DuestreamError('bad-input', `${what} is ${given}; allowed: an array of at most ${LIST_MAX}`);
}
