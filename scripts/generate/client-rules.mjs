/**
 * Renders what `duestream conformance` judges as `docs/reference/client-rules.md`. Pure.  */
import { LEASE_MS } from '../../src/conformance/orders.ts';
import { producerAsks } from '../../src/conformance/producer-asks.ts';
import { clientRules, programDeeds, programEnvironment } from '../../src/conformance/rules.ts';

/** @returns {string} */
export function renderClientRules() {
  return `<!-- Generated from src/conformance by \`npm run generate\`; a test compares it. -->
# Rules for clients

What a client must do that is not ours. \`duestream conformance\` plays what can go wrong against it and says, rule by rule, what held.

## Of a worker over HTTP

[The calls](../how-to/work-over-http.md#the-calls) are on the page on workers in any language.

| rule | a client must | else | tried by |
|---|---|---|---|
${table(clientRules, ({ says, else: otherwise, tried }) => [says, otherwise, tried])}

\`\`\`sh
duestream conformance --worker "python3 clients/python/probe.py"
\`\`\`

The command starts a Redis, two daemons, and a line to each of them that plays the faults; all of it ends with the run, which takes about half a minute. A trial that fails is played again, alone: a failure was seen twice. It needs a
\`redis-server\` ([where it is looked for](../how-to/embedded-redis.md)). A lease is ${LEASE_MS / 1000} s there. \`--rule\` tries some rules only.

The program is yours: a worker of some lines, which runs at least five jobs at a time. It is started once or more for each trial, with these variables:

| variable | has |
|---|---|
${table(programEnvironment, (text) => [text])}

Its handler prints \`began <id> <token>\` on a line of its own, without a buffer, and does what the field \`do\` of the data says:

| \`do\` | the handler |
|---|---|
${table(programDeeds, (text) => [text])}

At SIGTERM the program stops its worker, waits for handlers no longer than half a second, and ends. [Python](../../clients/python/probe.py), [Go](../../clients/go/probe/main.go) and
[PHP](../../clients/php/probe.php) have such programs.

## Of a producer

A producer that writes to Redis itself works out names, members and records as [the wire protocol](../wire-protocol.md) says.

\`\`\`sh
duestream conformance --producer "python3 examples/foreign-producers/answer_vectors.py"
\`\`\`

The command writes a line of JSON for each question to the program, such as \`{"ask": "member", "given": {"id": "a", "bare": false}}\`, and reads a line for each, in their
order: \`{"says": "j:a"}\`, or \`{"knows": false}\` where the program does not do this. It compares the answers with the
[golden vectors](../wire-protocol.md#golden-vectors).

| \`ask\` | is | \`given\` | \`says\` |
|---|---|---|---|
${table(producerAsks, ({ doc, given, answer }) => [doc, given, answer])}

## What the command answers

Each row says \`held\`, \`failed\` or \`not tried\`, and what was seen. With \`--json\` the answer is one object with \`ok\` and \`rows\`. While it runs, the command tells its
trials on standard error.

| exit code | means |
|---|---|
| 0 | nothing failed |
| 1 | a rule failed, the program ended, or somebody interrupted the run |
| 69 | there is no Redis to run |
| 75 | the time (\`--seconds\`) was up before every trial had its turn |
`;
}

/**
 * @template Row
 * @param {Readonly<Record<string, Row>>} rows
 * @param {(row: Row) => readonly string[]} cells
 */
const table = (rows, cells) =>
  Object.entries(rows)
    .map(([name, row]) => `| \`${name}\` | ${cells(row).join(' | ')} |`)
    .join('\n');
