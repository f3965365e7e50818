/**
 * The chart in `deploy/helm/duestream`, and what is made of it. People edit `values.yaml` and `templates/`; from these, from the
 * table of options, from the version and from the alerts come
 *
 *  Chart.yaml, values.schema.json, alerts.yaml     in the chart, for Helm
 *  deploy/kubernetes/*.yaml                        what the chart renders, for `kubectl apply`
 *
 * `chart-schema.mjs` beside it makes the schema.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { version } from '../../src/kernel/version.ts';
import { root } from '../steps.mjs';
import { renderTemplates } from './helm.mjs';

/** @typedef {{ readonly [name: string]: unknown }} Values */

const CHART = 'deploy/helm/duestream';
const MANIFESTS = 'deploy/kubernetes';

/** @param {string} path */
const textOf = (path) => readFileSync(join(root, path), 'utf8');

export function renderChartFile() {
  const chart = {
    apiVersion: 'v2',
    name: 'duestream',
    description: 'Delayed jobs for the Redis you already have: daemons, workers, monitoring and autoscaling.',
    type: 'application',
    version,
    appVersion: version,
    // The oldest one that knows unhealthyPodEvictionPolicy.
    kubeVersion: '>=1.27.0-0',
  };
  return `# Made by \`npm run generate\`; edit scripts/generate/chart.mjs.\n${stringify(chart, { lineWidth: 0 })}`;
}

/** Helm can read files of the chart alone. */
export const renderChartAlerts = () =>
  `# Made by \`npm run generate\`; edit deploy/alerts.yaml.\n${textOf('deploy/alerts.yaml')}`;

/**
 * What each template of the chart comes to.
 *
 * @param {{ readonly values?: Values, readonly release?: { readonly Name: string, readonly Namespace: string, readonly Service: string } }} [given]
 */
export function renderChart({ values = {}, release = { Name: 'duestream', Namespace: 'jobs', Service: 'Helm' } } = {}) {
  const names = readdirSync(join(root, CHART, 'templates'));
  const templates = Object.fromEntries(names.map((name) => [name, textOf(`${CHART}/templates/${name}`)]));
  const { appVersion } = parse(renderChartFile());
  return renderTemplates({
    templates,
    root: {
      Values: merged(parse(textOf(`${CHART}/values.yaml`)), values),
      Release: release,
      Chart: { AppVersion: appVersion },
      Files: { Get: (/** @type {string} */ name) => (name === 'alerts.yaml' ? renderChartAlerts() : '') },
    },
  });
}

/**
 * As Helm puts what is given above the defaults: sections word by word, all else whole; `null` takes a default away.
 *
 * @param {Values} defaults @param {Values} given @returns {Values}
 */
function merged(defaults, given) {
  const both = Object.entries(given).map(([name, value]) => {
    const before = defaults[name];
    return [name, isSection(before) && isSection(value) ? merged(before, value) : value];
  });
  const all = Object.entries({ ...defaults, ...Object.fromEntries(both) });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

/** @param {unknown} value @returns {value is Values} */
const isSection = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// The plain manifests. Each file has the objects that a part of the chart adds, so that who has no Prometheus or no KEDA applies
// the others.

/** `beside`: the values of the objects that are in another file already. @typedef {{ readonly values: Values, readonly beside?: Values, readonly about: readonly string[] }} Part */

const WORKERS = { worker: { enabled: true, image: 'registry.example.com/shop:1.0.0', queues: ['emails'] } };

/** @type {Readonly<Record<string, Part>>} */
const PARTS = {
  'duestream.yaml': {
    values: {},
    about: [
      'Two daemons. They need the image, which you name below, and this Secret:',
      '',
      '  kubectl create secret generic duestream --namespace duestream \\',
      '    --from-file=redis-url=./redis-url --from-literal=token="$(openssl rand -hex 24)"',
      '',
      'A changed ConfigMap or Secret changes no pod: `kubectl rollout restart deployment` does.',
    ],
  },
  'worker.yaml': {
    values: WORKERS,
    beside: {},
    about: ['Workers. Put your image, your file of handlers and your queues in their places.'],
  },
  'monitoring.yaml': {
    values: { monitoring: { enabled: true } },
    beside: {},
    about: ['For the Prometheus Operator: what is scraped, and the alerts.'],
  },
  'autoscaling.yaml': {
    values: { ...WORKERS, keda: { enabled: true } },
    beside: WORKERS,
    about: [
      'For KEDA: workers by how long due jobs wait. Take `replicas` out of worker.yaml, and put the address of your Prometheus and',
      'your queues in their places.',
    ],
  },
};

/** Path → what makes it. */
export const manifests = Object.fromEntries(
  Object.entries(PARTS).map(([name, part]) => [`${MANIFESTS}/${name}`, () => renderManifest(part)]),
);

/** @param {Part} part */
function renderManifest({ values, beside, about }) {
  const release = { Name: 'duestream', Namespace: 'duestream', Service: 'kubectl' };
  const known = new Set((beside ? objectsOf(renderChart({ values: beside, release })) : []).map(({ id }) => id));
  const own = objectsOf(renderChart({ values, release })).filter(({ id }) => !known.has(id));
  const head = [
    'Made by `npm run generate`: what the chart in deploy/helm renders, for `kubectl apply --namespace duestream -f`.',
    ...about,
  ];
  return `${head.map((line) => `# ${line}`.trimEnd()).join('\n')}\n${own.map(({ text }) => `---\n${text}\n`).join('')}`;
}

/** The objects of all templates. @param {Readonly<Record<string, string>>} rendered */
export function objectsOf(rendered) {
  const texts = Object.entries(rendered).flatMap(([name, text]) => (name === 'NOTES.txt' ? [] : text.split(/^---$/m)));
  return texts.flatMap((text) => {
    const object = parse(text);
    return object ? [{ id: `${object.kind} ${object.metadata.name}`, text: text.trim(), object }] : [];
  });
}
