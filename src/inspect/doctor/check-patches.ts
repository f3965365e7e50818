/**
 * Versions with known holes that our way of using Redis touches: scripts and blocking reads. The versions are those of
 * the release notes. A distribution may have patched an older one without a new number, which nobody can see from here;
 * that is why this only warns.
 */
import type { Finding, Info } from './finding.ts';

interface Hole {
  readonly cve: string;
  readonly what: string;
  readonly product: 'Redis' | 'Valkey';
  /** The first version that has it. */
  readonly from: string;
  /** The first version without it, one per line of releases. Later lines never had it. */
  readonly fixed: readonly string[];
}

const LUA = { cve: 'CVE-2025-49844', what: 'a script can take over the server', from: '0.0.0' } as const;

/** Sources: release notes of Redis of October 2025 and May 2026, and of Valkey of October 2025. */
const HOLES: readonly Hole[] = [
  { ...LUA, product: 'Redis', fixed: ['6.2.20', '7.2.11', '7.4.6', '8.0.4', '8.2.2'] },
  { ...LUA, product: 'Valkey', fixed: ['7.2.11', '8.0.6', '8.1.4'] },
  {
    cve: 'CVE-2026-23479',
    what: 'a client that is unblocked can take over the server',
    product: 'Redis',
    from: '7.2.0',
    fixed: ['7.2.14', '7.4.9', '8.2.6', '8.4.3', '8.6.3'],
  },
];

export function patches(info: Info): Finding {
  const { product, version } = versionOf(info);
  const open = HOLES.filter((hole) => hole.product === product && isOpen(version, hole));
  const saw = `${product} ${version}`;
  if (open.length === 0) return { status: 'ok', saw: `${saw} has none of the vulnerabilities that we know` };
  const holes = open.map(({ cve, what }) => `${cve} (${what})`).join(', ');
  const advice = `upgrade to ${remedy(product, version)} or later, unless your distribution has patched this version`;
  return { status: 'warn', saw: `${saw} has known vulnerabilities: ${holes}`, advice };
}

export function versionOf(info: Info): { readonly product: Hole['product']; readonly version: string } {
  const valkey = info.get('valkey_version');
  if (valkey !== undefined) return { product: 'Valkey', version: valkey };
  return { product: 'Redis', version: info.get('redis_version') ?? '0.0.0' };
}

function isOpen(version: string, { from, fixed }: Hole): boolean {
  if (compare(version, from) < 0) return false;
  const own = fixed.find((candidate) => lineOf(candidate) === lineOf(version));
  if (own !== undefined) return compare(version, own) < 0;
  return compare(version, fixed.at(-1) ?? '') < 0;
}

/** The next version that has none of the holes: of its own line of releases, or of the next that was repaired. */
function remedy(product: Hole['product'], version: string): string {
  const holes = HOLES.filter((hole) => hole.product === product);
  const later = holes.flatMap(({ fixed }) => fixed).filter((candidate) => compare(candidate, version) > 0);
  return later.sort(compare).find((candidate) => !holes.some((hole) => isOpen(candidate, hole))) ?? 'the newest';
}

const lineOf = (version: string) => version.split('.').slice(0, 2).join('.');

function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map((part) => Number.parseInt(part, 10) || 0));
  for (const at of [0, 1, 2]) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
