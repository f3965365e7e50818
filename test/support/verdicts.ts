/**
 * What was proven of scripts whose text is still the same. `test/proof/verdicts.json` keeps a digest of each planted bug that
 * was noticed and of each scene whose calls were cut off: of the bug, and of every script that it stands in, without their
 * comments. CI tries what has no digest there, so a checkout needs nothing but that file to know what has changed.
 *
 *     npm run verify                                                      # tries all, and keeps what was proven
 *     PROOF_OF=new PROOF_KEEP=1 npx vitest run test/proof/mutants.test.ts # tries what is new, and keeps it
 *     PROOF_OF=all …                                                      # tries all, also in a slice
 *
 * A verdict depends on who judges, too: on the model, the scenes and the stories. When one of these has changed, CI tries an
 * eighth of what is known, and another eighth after the next change. What else it depends on is the other scripts that a
 * scene calls, and Redis: only `npm run verify` looks at those.
 */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSlice, tier } from '../tiers.mjs';
import { luaOf } from './model-cut.ts';
import { read, root, walk } from './repository.ts';

const FILE = 'test/proof/verdicts.json';
const SHARE = 8;
/** Digests in a line of the file. */
const IN_LINE = 10;

/** Of one test file: the digest of those who judge, and of what they have judged. */
interface Kept {
  readonly judges: string;
  readonly proven: readonly string[];
}

export interface Verdicts {
  /** Whether this has to be tried now. */
  readonly isAsked: (digest: string) => boolean;
  /** Keeps that all of these are proven, where somebody asked for that; when some were left out because of their name, not. */
  readonly keep: (all: readonly string[]) => Promise<void>;
}

/** @param judges how the paths of the files begin that judge */
export function verdictsOf(proof: string, judges: readonly string[]): Verdicts {
  const kept = keptOf()[proof] ?? { judges: '', proven: [] };
  const proven = new Set(kept.proven);
  const paths = [...walk('test/support'), ...walk('test/proof')].filter((path) =>
    judges.some((begin) => path.startsWith(begin)),
  );
  const by = digest(...paths.toSorted().map(read));
  const isShare = (text: string) => Number.parseInt(text, 16) % SHARE === Number.parseInt(by, 16) % SHARE;
  const isKnown = (text: string) => proven.has(text) && (by === kept.judges || !isShare(text));
  const asksForNew = process.env.PROOF_OF === 'new' || (isSlice && process.env.PROOF_OF !== 'all');
  return {
    isAsked: (text) => !(asksForNew && isKnown(text)),
    async keep(all) {
      if (isOfNames || (tier !== 'verify' && !process.env.PROOF_KEEP)) return;
      await write({ ...keptOf(), [proof]: { judges: by, proven: [...new Set(all)].toSorted() } });
    },
  };
}

const isOfNames = !['new', 'all', undefined].includes(process.env.PROOF_OF);
/** Names in `PROOF_OF`: only bugs of these scripts and parts are planted. */
export const named = isOfNames ? process.env.PROOF_OF?.split(',') : undefined;

/** Of a bug: the whole text of every script that has it, by verb. */
export function digestOfBug(scripts: ReadonlyMap<string, string>): string {
  const verbs = [...scripts.keys()].toSorted();
  // The bug is the same in all of them.
  return digest(...verbs.map(digestOfScript), codeOf(scripts.get(verbs[0] ?? '') ?? ''));
}

/** Of a scene, and of the script that it is about, if it is about one. */
export const digestOfScene = (text: string, verb?: string): string =>
  digest(text, verb === undefined ? '' : digestOfScript(verb));

const ofScripts = new Map<string, string>();
function digestOfScript(verb: string): string {
  const known = ofScripts.get(verb) ?? digest(verb, codeOf(luaOf(verb)));
  ofScripts.set(verb, known);
  return known;
}

/** Without comments, but with the flags. */
const codeOf = (lua: string): string => lua.replaceAll(/^\s*(--.*)?\n/gm, '');

/** 32 bits: of a thousand that are kept, one that is new is taken for one of them four times in a million. */
function digest(...texts: readonly string[]): string {
  const hash = createHash('sha1');
  for (const text of texts) hash.update(text).update('\0');
  return hash.digest('hex').slice(0, 8);
}

function keptOf(): Readonly<Record<string, Kept>> {
  const lines: unknown = JSON.parse(read(FILE));
  return Object.fromEntries(
    Object.entries(lines as Readonly<Record<string, { judges: string; proven: readonly string[] }>>).map(
      ([proof, { judges, proven }]) => [proof, { judges, proven: proven.flatMap((line) => line.split(' ')) }],
    ),
  );
}

async function write(all: Readonly<Record<string, Kept>>): Promise<void> {
  const inLines = (proven: readonly string[]) =>
    Array.from({ length: Math.ceil(proven.length / IN_LINE) }, (_, at) =>
      proven.slice(at * IN_LINE, (at + 1) * IN_LINE).join(' '),
    );
  const rows = Object.entries(all)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([proof, { judges, proven }]) => [proof, { judges, proven: inLines(proven) }] as const);
  await writeFile(join(root, FILE), `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`);
}
