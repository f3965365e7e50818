/** A topology that another process starts, and what is left of it when that process is killed or has closed it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { isAlive } from '../../src/embedded/lock.mjs';
import { testBinary } from './redis-binary.ts';

export interface Traces {
  readonly pids: readonly number[];
  readonly dir: string;
}

/** Pids that live and the folder if it is there. */
export function leftOf({ pids, dir }: Traces): readonly (number | string)[] {
  return [...pids.filter((pid) => isAlive(pid)), ...(existsSync(dir) ? [dir] : [])];
}

export interface Elsewhere extends Traces {
  readonly parent: ChildProcess;
}

/** `call` is a function of `src/embedded/<module>.mjs`. The process then waits for its end. */
export async function startElsewhere(module: string, call: string): Promise<Elsewhere> {
  const url = new URL(`../../src/embedded/${module}.mjs`, import.meta.url).href;
  const code = `import { ${call} } from ${JSON.stringify(url)};
    const { dir, nodes, sentinels = [] } = await ${call}({ binary: ${JSON.stringify(await testBinary())} });
    console.log(JSON.stringify({ dir, pids: [...nodes, ...sentinels].map(({ pid }) => pid) }));`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(parent.stdout, 'data');
  return { parent, ...JSON.parse(String(line)) };
}
