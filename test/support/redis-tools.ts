/** A system where redis-tools is installed and redis-server is not, in a folder that stands for `/usr`. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** In Debian redis-server is a link to the checker, and the program looks at the name it is called by. */
const CHECKER = `#!/bin/sh
case "$0" in
  *redis-server) echo 'Redis server v=7.0.15 sha=00000000:0 malloc=libc bits=64 build=1' ;;
  *) echo 'Usage: redis-check-rdb <rdb-file-name>'; exit 1 ;;
esac
`;

/** Makes `folder/bin` for PATH. The checker is itself a link, as where alternatives are kept. */
export async function installRedisTools(folder: string): Promise<string> {
  const [bin, lib] = [join(folder, 'bin'), join(folder, 'lib')];
  for (const place of [bin, lib]) await mkdir(place, { recursive: true });
  await writeFile(join(lib, 'checker'), CHECKER, { mode: 0o755 });
  await writeFile(join(bin, 'redis-cli'), "#!/bin/sh\necho 'redis-cli 7.0.15'\n", { mode: 0o755 });
  await symlink('../lib/checker', join(bin, 'redis-check-rdb'));
  return bin;
}

/** Path → digest of every file and link below a folder. */
export async function digestsOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  const digests = files.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    const content = entry.isSymbolicLink() ? `link to ${await readlink(path)}` : await readFile(path);
    return [path, createHash('sha256').update(content).digest('hex')] as const;
  });
  return Object.fromEntries(await Promise.all(digests));
}
