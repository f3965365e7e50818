/** A Prometheus of its own that scrapes every second, in a folder that goes with it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/embedded/port.mjs';
import { prometheusPath } from './promtool.ts';

export interface Prometheus {
  /** Such as `http://127.0.0.1:20001`. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** An address for `startPrometheus`, where something has to know it before. */
export const prometheusUrl = async (): Promise<string> =>
  `http://127.0.0.1:${await freePort(20_000 + Math.floor(Math.random() * 10_000))}`;

/** @param scrapes what stands below `scrape_configs` */
export async function startPrometheus(scrapes: readonly object[], url?: string): Promise<Prometheus> {
  const at = url ?? (await prometheusUrl());
  const folder = mkdtempSync(join(tmpdir(), 'due-prometheus-'));
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: scrapes }));
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${new URL(at).host}`,
  ];
  const child = spawn(await prometheusPath(), args, { stdio: 'ignore' });
  const gone = once(child, 'exit');
  return {
    url: at,
    async stop() {
      child.kill('SIGTERM');
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
