/** Every file that is made from code or from results, and what makes it. `test/generated.test.ts` compares them all. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pagesOf, resultsOf } from '../../bench/results.mjs';
import { sections } from '../../bench/sections.mjs';
import { createProgram } from '../../src/cli/cli.ts';
import { examplesOf } from '../../src/cli/session.ts';
import { options } from '../../src/config/options.ts';
import { documentOf } from '../../src/http/api/api.ts';
import { eventLevels } from '../../src/job/events.ts';
import { allOptions } from '../../src/job/fields.ts';
import { controlTable, limitTable, partitionTable } from '../../src/redis/keys.ts';
import { root } from '../steps.mjs';
import { answerSchemas } from './answers.mjs';
import { apiTypes } from './api-types.mjs';
import { manifests, renderChartAlerts, renderChartFile } from './chart.mjs';
import { renderValuesSchema } from './chart-schema.mjs';
import { renderCli } from './cli.mjs';
import { renderClientRules } from './client-rules.mjs';
import { renderMarkdown, renderSchema } from './configuration.mjs';
import { renderEvents } from './events.mjs';
import { renderJobOptions } from './job-options.mjs';
import { renderKeys } from './keys.mjs';
import { renderLlms } from './llms.mjs';
import { renderFigures } from './plan-figures.mjs';
import { renderQueueSettings } from './queue-settings.mjs';
import { renderSettingRows } from './setting-rows.mjs';

/** Path → its text. @type {Readonly<Record<string, () => string | Promise<string>>>} */
export const files = {
  'config/duestream.schema.json': () => renderSchema(options),
  'deploy/helm/duestream/Chart.yaml': () => renderChartFile(),
  'deploy/helm/duestream/alerts.yaml': () => renderChartAlerts(),
  'deploy/helm/duestream/values.schema.json': () => renderValuesSchema(),
  ...manifests,
  'docs/reference/cli.md': () => renderCli(createProgram({ run: async () => undefined }), examplesOf),
  'docs/reference/client-rules.md': () => renderClientRules(),
  'docs/reference/configuration.md': () => renderMarkdown(options),
  'docs/reference/events.md': () => renderEvents({ source: textOf('src/job/events.ts'), levels: eventLevels }),
  'docs/reference/job-options.md': () => renderJobOptions(allOptions),
  'docs/reference/keys.md': () => renderKeys({ partition: partitionTable, control: controlTable, limit: limitTable }),
  'docs/reference/openapi.json': () => documentOf(),
  'docs/reference/queue-settings.md': () => renderQueueSettings(),
  'llms.txt': () => renderLlms(textOf),
  'src/dashboard/api-types.ts': async () => (await apiTypes(documentOf())).schemas,
  'src/dashboard/calls.ts': async () => (await apiTypes(documentOf())).calls,
  'src/dashboard/setting-rows.ts': () => renderSettingRows(),
  'src/http/api/answer-schemas.ts': () => answerSchemas(),
  'src/inspect/bench-figures.ts': () => renderFigures(resultsOf('peers'), resultsOf('idle')),
  ...Object.fromEntries(
    Object.keys(sections).flatMap((name) => [...pagesOf(name).keys()].map((page) => [page, () => madeBy(page)])),
  ),
};

/** A page may have sections of several measurements. @param {string} page */
function madeBy(page) {
  return Object.keys(sections).reduce(
    (text, name) => pagesOf(name, new Map([[page, text]])).get(page) ?? text,
    textOf(page),
  );
}

/** @param {string} path */
const textOf = (path) => readFileSync(join(root, path), 'utf8');
