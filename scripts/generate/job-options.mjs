/**
 * Renders the table of the options of a job as `docs/reference/job-options.md`. Pure.  */
import { flagOf } from '../../src/cli/terminal/job-flags.ts';

/** @typedef {import('../../src/job/option-kinds.ts').JobOption} JobOption */
/** @typedef {import('../../src/job/option-kinds.ts').Named} Named */

/** @param {readonly Named[]} options */
export function renderJobOptions(options) {
  return `<!-- Generated from src/job/options.ts by \`npm run generate\`; a test compares it. -->
# The options of a job

What one job can be told beside its data. All of them are optional, and each has one name everywhere: in
\`producer.schedule(queue, data, options)\` and \`scheduleMany\`, in a line of [\`duestream schedule --bulk\`](cli.md#duestream-schedule)
and in the [test kit](../how-to/test-with-virtual-time.md). A schedule can say some of them for all of its jobs, in
[\`schedules.put\`](schedules.md), in a file, or with the same flag of [\`duestream schedules put\`](cli.md#duestream-schedules-put).

| option | allowed | default | flag | of a schedule | in the record |
|---|---|---|---|---|---|
${options.map(row).join('\n')}

A value outside what is allowed, and a name that is not in the table, are refused with \`bad-input\` before anything is
sent. An \`undefined\` counts as left out.

A line of \`schedule --bulk\` has these names as its keys, beside \`data\`:

\`\`\`json
${options.map(line).join('\n')}
\`\`\`

In the [record](../wire-protocol.md#record), \`o.a\` is the key \`a\` in the object \`o\` of the JSON, and \`;e=\` the letter \`e\`
of the header. The id is the job's member, its name is the key \`n\`, and \`delay\` or \`at\` is the due time. A foreign producer
may write anything there: a job with a value in \`o\` that cannot be one becomes a dead letter when it is started, and a
value in the header that cannot be read counts as left out.
`;
}

/** @param {Named} named */
function row({ name, option }) {
  const { doc, allowed, otherwise, metavar, schedule, needs } = option;
  const others = needs === undefined ? '' : `; only with ${needs.map((other) => `\`${other}\``).join(' or ')}`;
  const field = schedule === undefined ? '–' : `\`${schedule === true ? name : schedule}\``;
  const cells = [
    `\`${name}\`<br>${sentence(doc)}`,
    `${allowed}${others}`,
    otherwise,
    `\`--${flagOf({ name, option })} ${metavar}\``,
    field,
    place(option),
  ];
  return `| ${cells.join(' | ')} |`;
}

/** @param {JobOption} option */
function place({ record }) {
  if (record === undefined) return '–';
  return 'json' in record ? `\`o.${record.json}\`` : `\`;${record.header}=\``;
}

/** @param {Named} named */
function line({ name, option }) {
  return JSON.stringify({ data: { to: 'ada@example.org' }, ...option.beside, [name]: option.example });
}

/** @param {string} text */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('…') ? '' : '.'}`;
