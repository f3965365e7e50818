/** The tarball as it would be published, from a build of the sources as they are. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { packageCode } from '../../scripts/package-code.mjs';
import { keepPublicTypes } from '../../scripts/public-types.mjs';
import { build } from '../../scripts/steps.mjs';
import { withLock } from '../../src/embedded/lock.mjs';
import { root } from './repository.ts';

export interface Packed {
  /** A new folder below the system's for temporary files; the tarball lies in it. */
  readonly folder: string;
  readonly tarball: string;
  /** The paths in it. */
  readonly paths: readonly string[];
  readonly packedBytes: number;
}

/** What was packed is kept, and is packed anew when a file of it has changed: packing takes many seconds, and several tests do. */
export async function pack(): Promise<Packed> {
  await build();
  const kept = join(root, '.cache', 'packed');
  const path = join(root, '.cache', 'packing');
  const made = await withLock({ path, timeoutMs: PACK_MS }, () => packedInto(kept));
  const folder = mkdtempSync(join(tmpdir(), 'duestream-pack-'));
  cpSync(join(kept, made.filename), join(folder, made.filename));
  const paths = made.files.map((file) => file.path);
  return { folder, tarball: join(folder, made.filename), paths, packedBytes: made.size };
}

const PACK_MS = 120_000;

/** What npm says of a tarball. */
interface Made {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

async function packedInto(kept: string): Promise<Made> {
  const parts = packageJson.files.flatMap((path) => (path.startsWith('!') ? [] : [path.replace(/\/\*\*.*$/, '')]));
  // The scripts of Redis go into the code.
  const sources = [...new Set(parts), 'lua/scripts.mjs', 'package.json', 'README.md', 'LICENSE', 'scripts'];
  const of = fingerprint(sources);
  const record = join(kept, 'made.json');
  const last = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : undefined;
  if (last?.of === of) return last.made;
  const staged = mkdtempSync(join(tmpdir(), 'duestream-staged-'));
  // Packing would build again, and the compiler rewrites files that processes of other tests are just importing. So the
  // steps of `prepack` are carried out in a copy.
  for (const source of sources.slice(0, -1)) cpSync(join(root, source), join(staged, source), { recursive: true });
  keepPublicTypes(join(staged, 'dist'));
  await packageCode(staged);
  rmSync(kept, { recursive: true, force: true });
  mkdirSync(kept, { recursive: true });
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', kept];
  const [made] = JSON.parse(runIn(staged, 'npm', args).replace(/^[^[]*/, ''));
  rmSync(staged, { recursive: true });
  writeFileSync(record, JSON.stringify({ of, made }));
  return made;
}

/** Names, sizes and times of all that is packed, and of what packs it. */
function fingerprint(sources: readonly string[]): string {
  const files = sources.flatMap((source) => {
    const whole = join(root, source);
    return statSync(whole).isDirectory()
      ? readdirSync(whole, { recursive: true, encoding: 'utf8' }).map((name) => join(whole, name))
      : [whole];
  });
  const lines = files
    .map((file) => ({ file, ...statSync(file) }))
    .map(({ file, size, mtimeMs }) => `${file} ${size} ${mtimeMs}`);
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex');
}

/**
 * Puts the package where an installation would put it, and beside it its dependencies and what is named, as links into
 * this repository. @returns the folder of the package
 */
export function unpack({ folder, tarball }: Packed, beside: readonly string[]): string {
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  execFileSync('tar', ['xzf', tarball, '-C', modules, '--transform', 's/^package/duestream/']);
  for (const name of [...Object.keys(packageJson.dependencies), ...beside]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  return join(modules, 'duestream');
}

export function runIn(cwd: string, command: string, args: readonly string[]): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 100_000 });
}
