/**
 * The alerts that we hand out, run by Prometheus' own judge of rules: each fires when it should, stays silent when all is
 * well, and asks for metrics that exist. Without promtool these tests fail: an alert nobody has run is none.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { promtool, promtoolPath } from '../../support/promtool.ts';
import { read, root, walk } from '../../support/repository.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
interface Case {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

const RULES = 'deploy/alerts.yaml';
const CASES = 'test/fixtures/alerts.test.yaml';
const rules: readonly Rule[] = parse(read(RULES)).groups.flatMap(({ rules: all }: { rules: readonly Rule[] }) => all);
const cases: readonly Case[] = parse(read(CASES)).tests.flatMap(
  ({ alert_rule_test: all }: { alert_rule_test: readonly Case[] }) => all,
);

// The first time, a package of 40 MB is fetched.
beforeAll(promtoolPath, 600_000);

test('every rule does what its cases say', async () => {
  expect(await promtool(['check', 'rules', RULES])).toMatchObject({ ok: true });
  expect(await promtool(['test', 'rules', CASES])).toMatchObject({ ok: true });
});

test('every rule has a case in which it fires, and one in which it is silent', () => {
  const told = (fires: boolean) => cases.filter(({ exp_alerts: all }) => all.length > 0 === fires);
  const names = rules.map(({ alert }) => alert).sort();
  expect([...new Set(told(true).map(({ alertname }) => alertname))].sort()).toEqual(names);
  expect([...new Set(told(false).map(({ alertname }) => alertname))].sort()).toEqual(names);
});

test('the cases notice a rule that never fires', async () => {
  const folder = join(root, '.cache');
  const broken = join(folder, `alerts-${process.pid}.yaml`);
  const copied = join(folder, `alerts-${process.pid}.test.yaml`);
  try {
    const blind = readFileSync(join(root, RULES), 'utf8').replace('oldest_due_age_seconds) > 60', 'ready_jobs) > 60');
    writeFileSync(broken, blind);
    writeFileSync(copied, read(CASES).replace(/rule_files: .*/, `rule_files: [${broken}]`));
    const { ok, said } = await promtool(['test', 'rules', copied]);
    expect({ ok, said }).toEqual({ ok: false, said: expect.stringContaining('alertname: DuestreamJobsWait') });
  } finally {
    for (const file of [broken, copied]) rmSync(file, { force: true });
  }
});

test('rules ask for metrics that are exported', () => {
  const made = walk('src/metrics').map(read).join('\n');
  const asked = rules.flatMap(({ expr }) => expr.match(/duestream_\w+/g) ?? []);
  const known = (name: string) => made.includes(`'${name.replace(/_(bucket|sum|count)$/, '')}'`);
  expect(asked.length).toBeGreaterThanOrEqual(rules.length);
  expect(asked.filter((name) => !known(name))).toEqual([]);
});

test('the how-to has a line for every rule', () => {
  const guide = read('docs/how-to/alerts.md');
  expect(rules.filter(({ alert }) => !guide.includes(`\`${alert}\``))).toEqual([]);
});
