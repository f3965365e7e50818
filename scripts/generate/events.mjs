/**
 * Renders `docs/reference/events.md` from the interface in `src/job/events.ts` and its comments. Pure. An event or a field about which
 * nobody says anything is an error.
 */
import ts from 'typescript';

/** What a field holds wherever it occurs, unless its own comment says something else. @type {Readonly<Record<string, string>>} */
const EVERYWHERE = {
  queue: 'the name of the queue',
  partition: 'the number of the partition',
  epoch: 'which election it was; each is greater than the ones before',
  id: 'the id of the job',
  name: 'the name of the job',
  schedule: 'the name of the schedule',
  count: 'how many',
  waiting: 'how many wait now',
  concurrency: 'how many slots the worker has',
  consumer: 'the name of the consumer',
  delayMs: 'until its next start',
  tookMs: 'how long it took',
  reason: 'why; of jobs that were missed `bounds` or `lost-writes`',
  awayMs: 'how long it lasted',
  lagMs: 'how much later than asked',
  limitBytes: 'its `maxmemory`',
  error: 'what went wrong. Of a job `{ atMs, attempt, kind, message }`, else a text',
  who: 'the part of the process that says so',
  why: 'the reason, in words',
  after: 'the policy that it had',
};

/** @param {{ readonly source: string, readonly levels: Readonly<Record<string, string>> }} from */
export function renderEvents({ source, levels }) {
  return `<!-- Generated from src/job/events.ts by \`npm run generate\`; a test compares it. -->
# Events

What happened, told once. Workers and daemons have \`events\`; a daemon tells what its workers tell, too. A listener is called
at once and in order. When it throws, the process warns, and nothing else is disturbed.

\`\`\`ts
import type { Worker } from 'duestream';

export function tellOfTheDead(worker: Worker): () => void {
  return worker.events.on('job.dead', ({ queue, id, reason }) => console.error(\`\${queue} \${id} is dead: \${reason}\`));
}
\`\`\`

A daemon, a worker and a subscriber write them into their log at the level in the table, with the same fields; \`–\` stands for events that are there for
metrics and programs only. Events of which an outage makes many are told sparingly in the log: \`unsaid\` and \`missed\` count
what was left out.

| event | log | when | fields |
|---|---|---|---|
${eventsIn(source)
  .map(({ name, when, fields }) => `| \`${name}\` | ${level(levels, name)} | ${when} | ${fields.join('<br>')} |`)
  .join('\n')}

Fields that hold the same everywhere:

| field | holds |
|---|---|
${Object.entries(EVERYWHERE)
  .map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  .join('\n')}

Fields that end in \`Ms\` are milliseconds; \`atMs\` and \`sinceMs\` are milliseconds since 1970. A field with \`?\` may be missing.
`;
}

/** @param {Readonly<Record<string, string>>} levels @param {string} name */
function level(levels, name) {
  const found = levels[name];
  if (found === undefined) throw new Error(`nobody says at which level ${name} is logged`);
  return found === 'none' ? '–' : found;
}

/** @param {string} source */
function eventsIn(source) {
  const file = ts.createSourceFile('events.ts', source, ts.ScriptTarget.Latest, true);
  const found = file.statements.filter(ts.isInterfaceDeclaration).find(({ name }) => name.text === 'Events');
  return [...(found?.members ?? [])].filter(ts.isPropertySignature).map((event) => {
    const name = ts.isStringLiteral(event.name) ? event.name.text : event.name.getText();
    const members = event.type && ts.isTypeLiteralNode(event.type) ? [...event.type.members] : [];
    const when = commentOf(event);
    if (when === undefined) throw new Error(`nobody says when ${name} is told`);
    return { name, when, fields: members.filter(ts.isPropertySignature).map(fieldOf) };
  });
}

/** What is the same everywhere is said once. @param {ts.PropertySignature} field */
function fieldOf(field) {
  const name = field.name.getText();
  const own = commentOf(field);
  if (own === undefined && EVERYWHERE[name] === undefined) throw new Error(`nobody says what ${name} holds`);
  const shown = `\`${name}${field.questionToken ? '?' : ''}\``;
  if (own === undefined) return shown;
  const text = own.startsWith('Redis') ? own : `${own.charAt(0).toLowerCase()}${own.slice(1)}`;
  return `${shown}: ${text.replace(/\.$/, '')}`;
}

/** @param {ts.PropertySignature} node */
function commentOf(node) {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return ts.getTextOfJSDocComment(comment?.comment)?.replaceAll('\n', ' ');
}
