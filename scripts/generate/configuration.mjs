/**
 * Renders the table of options as `config/duestream.schema.json` and `docs/reference/configuration.md`.
 * Pure.  */
import { z } from 'zod';
import { envName } from '../../src/config/table.ts';
import { durationText } from '../../src/kernel/duration.ts';

/** @typedef {import('../../src/config/table.ts').Option} Option */

const NOTE = 'Generated from src/config/options.ts by `npm run generate`; a test compares it.';

/**
 * A JSON Schema of `duestream.yaml`: an editor completes names, shows what they mean, and marks what would be refused. What JSON
 * Schema cannot say, such as how a duration is written, is said in words, and refused when the file is read.
 *
 * @param {readonly Option[]} options
 */
export function renderSchema(options) {
  const root = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'duestream.yaml', ...sectionOf() };
  for (const option of options) {
    const names = option.key.split('.');
    const last = names.pop() ?? '';
    names.reduce(innerOf, root).properties[last] = propertyOf(option);
  }
  return `${JSON.stringify(root, undefined, 2)}\n`;
}

/** @typedef {{ type: 'object', additionalProperties: false | Section, properties: Record<string, any> }} Section */

/** @returns {Section} */
const sectionOf = () => ({ type: 'object', additionalProperties: false, properties: {} });

/** A section within another one; `*` stands for any name. @param {Section} section @param {string} name @returns {Section} */
function innerOf(section, name) {
  if (name === '*') {
    section.additionalProperties ||= sectionOf();
    return section.additionalProperties;
  }
  section.properties[name] ??= sectionOf();
  return section.properties[name];
}

/** @param {Option} option */
function propertyOf(option) {
  const { kind, doc, allowed, schema } = option;
  const description = `${doc} Allowed: ${allowed}.`;
  if (kind === 'duration') {
    return {
      description,
      type: ['string', 'integer'],
      ...(option.fallback === undefined ? {} : { default: yaml(option) }),
    };
  }
  const { $schema: _, ...form } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return { description, ...form };
}

/** @param {readonly Option[]} options */
export function renderMarkdown(options) {
  return `<!-- ${NOTE} -->
# Configuration

Flags win over the environment, the environment over the file, the file over the defaults. The file is the one named by
\`--config\`, else by \`DUESTREAM_CONFIG\`, else \`duestream.yaml\` in the working directory. An unknown name and a value
outside its range stop the start with exit code 78. \`duestream admin config\` shows each value and where it was set.

Times are written as \`500ms\`, \`90s\`, \`15m\`, \`1h\`, \`3d\` or \`P3D\`, as in code; a number is milliseconds. Names that ended with
\`Ms\` (\`worker.jobLeaseMs\`, \`DUESTREAM_WORKER__JOB_LEASE_MS\`) are refused with the name that took their place. An empty environment variable counts as not set.
A secret can be kept in a file: the variable with \`_FILE\` behind its name holds the path. The variables that
Kubernetes makes for a service called duestream are passed over.

| option | default | allowed | environment | flag |
|---|---|---|---|---|
${options.map(row).join('\n')}

What is written for a queue wins over the queue's definition in code; what is not written stays as the code has it.
A realistic file is [\`config/production.example.yaml\`](../../config/production.example.yaml). An editor that knows JSON Schema completes and checks
the file, if its first line says where the schema is:

\`\`\`yaml
# yaml-language-server: $schema=node_modules/duestream/config/duestream.schema.json
\`\`\`

Read before there is a configuration: \`DUESTREAM_CONFIG\`, \`DUESTREAM_REDIS_SERVER_BIN\` (the \`redis-server\` that
\`duestream dev\` runs) and \`DUESTREAM_REDIS_SOURCE\` (where it may come from: url, bin or path).
`;
}

/** @param {Option} option */
function row(option) {
  const env = envName(option);
  const file = option.secret === undefined || env === undefined ? '' : `, \`${env}_FILE\``;
  return `| ${[
    `\`${option.key.replace('*', '<name>')}\`<br>${option.doc}`,
    option.fallback === undefined ? 'as in code' : `\`${yaml(option)}\`${human(option)}`,
    option.allowed,
    env === undefined ? '–' : `\`${env}\`${file}`,
    option.flag === undefined ? '–' : `\`--${option.flag}\``,
  ].join(' | ')} |`;
}

/** @param {Option} option */
export function yaml({ fallback, kind }) {
  if (kind === 'duration' && typeof fallback === 'number') return durationText(fallback);
  if (Object(fallback) === fallback && !Array.isArray(fallback)) return JSON.stringify(fallback);
  if (Array.isArray(fallback)) return `[${fallback.join(', ')}]`;
  return fallback === '' ? "''" : String(fallback);
}

/** The default in larger units, where bytes have them. @param {Option} option */
function human({ fallback, unit }) {
  if (typeof fallback !== 'number' || fallback === 0) return '';
  if (unit === 'bytes') return fallback % 1024 === 0 ? ` (${fallback / 1024} KiB)` : '';
  return '';
}
