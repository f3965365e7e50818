/**
 * The schemas of Kubernetes let a field pass that nobody knows, so a misspelt one would be no more than without effect. The types of the
 * same models know every field: each object is compiled as a literal of its type.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { EVERYTHING, objectsWith, type Parsed } from '../../support/kubernetes.ts';
import { root } from '../../support/repository.ts';

// Inside of the repository, where the models are found.
mkdirSync(join(root, '.cache'), { recursive: true });
const folder = mkdtempSync(join(root, '.cache', 'kubernetes-fields-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** By the group of their API; those of Kubernetes itself have none of these. */
const PACKAGES: Readonly<Record<string, string>> = {
  'keda.sh': '@kubernetes-models/keda',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

/** What the compiler says. */
function compile(objects: readonly Parsed[]): string {
  const lines = objects.map((object, at) => {
    const [group = ''] = object.apiVersion.split('/');
    const from = `${PACKAGES[group] ?? 'kubernetes-models'}/${object.apiVersion}`;
    const type = `I${object.kind}`;
    return `import type { ${type} as Type${at} } from '${from}';\nexport const object${at}: Type${at} = ${JSON.stringify(object)};\n`;
  });
  const file = join(folder, 'objects.mts');
  writeFileSync(file, lines.join(''));
  const options = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--target',
    'es2023',
    '--module',
    'nodenext',
    '--types',
    'node',
  ];
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout, stderr } = spawnSync(tsc, [...options, '--ignoreConfig', file], { cwd: folder, encoding: 'utf8' });
  return stdout + stderr;
}

const all = [...objectsWith(EVERYTHING).values()];

test('no object has a field that Kubernetes, the Prometheus Operator or KEDA does not know', () => {
  expect(all.length).toBeGreaterThan(10);
  expect(compile(all)).toBe('');
});

test.for<readonly [kind: string, field: string]>([
  ['Deployment', 'replica'],
  ['NetworkPolicy', 'egres'],
  ['ServiceMonitor', 'endpoint'],
  ['ScaledObject', 'coolDownPeriod'],
])('of a %s the misspelt field %s is noticed', ([kind, field]) => {
  const object = all.find((one) => one.kind === kind);
  const wrong = { ...object, spec: { ...object.spec, [field]: 1 } };
  expect(compile([wrong])).toContain(`'"${field}"' does not exist`);
});
