/** The tarball as it would be published, from a build of the sources as they are. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { packageCode } from '../../scripts/package-code.mjs';
import { keepPublicTypes } from '../../scripts/public-types.mjs';
import { build } from '../../scripts/steps.mjs';
import { root } from './repository.ts';

export interface Packed {
  /** A new folder below the system's for temporary files; the tarball lies in it. */
  readonly folder: string;
  readonly tarball: string;
  /** The paths in it. */
  readonly paths: readonly string[];
  readonly packedBytes: number;
}

export async function pack(): Promise<Packed> {
  const folder = mkdtempSync(join(tmpdir(), 'duestream-pack-'));
  const staged = mkdtempSync(join(tmpdir(), 'duestream-staged-'));
  // Packing would build again, and the compiler rewrites files that processes of other tests are just importing. So the
  // steps of `prepack` are carried out in a copy.
  await build();
  const parts = packageJson.files.flatMap((path) => (path.startsWith('!') ? [] : [path.replace(/\/\*\*.*$/, '')]));
  // The scripts of Redis go into the code.
  for (const part of [...new Set(parts), 'lua/scripts.mjs', 'package.json', 'README.md', 'LICENSE'])
    cpSync(join(root, part), join(staged, part), { recursive: true });
  keepPublicTypes(join(staged, 'dist'));
  await packageCode(staged);
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const [made] = JSON.parse(runIn(staged, 'npm', args).replace(/^[^[]*/, ''));
  rmSync(staged, { recursive: true });
  const paths = made.files.map(({ path }: { readonly path: string }) => path);
  return { folder, tarball: join(folder, made.filename), paths, packedBytes: made.size };
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
