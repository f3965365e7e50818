/**
 * Renders the table of the settings of a queue as `docs/reference/queue-settings.md`. Pure.  */
import { groupExamples, queueFlagsOf } from '../../src/cli/terminal/setting-flags.ts';
import { fieldsOfWord, groupLimitRows, settingOf, settingWords } from '../../src/job/queue-settings.ts';

export function renderQueueSettings() {
  return `<!-- Generated from src/job/queue-settings.ts by \`npm run generate\`; a test compares it. -->
# The settings of a queue

What is stored with a queue in Redis and holds for every process. Each setting has one name everywhere: in
[\`defineQueue\`](api/duestream.md#queueoptions), below \`queues.<name>\` in the [configuration](configuration.md), and in
[\`PATCH /v1/queues/{queue}/settings\`](http-api.md). On the command line
[\`duestream queues set\`](cli.md#duestream-queues-set) has flags for it, and
[\`duestream queues set --unset\`](cli.md#duestream-queues-set) takes it back.

| setting | allowed | flags of \`queues set\` | holds | in the registry |
|---|---|---|---|---|
${settingWords.map(row).join('\n')}

A definition that says nothing of a setting leaves it as it is stored. What somebody sets by command stands above what
definitions say until it is taken back. \`within 30 s\` is how long it may take until every process follows.

In \`groups\`, and with [\`duestream groups set\`](cli.md#duestream-groups-set), a group has limits of its own:

| limit | allowed | flag of \`groups set\` | also in \`perGroup\` |
|---|---|---|---|
${groupLimitRows.map(groupRow).join('\n')}

[How to limit](../how-to/limits.md) says what limits do, [how many jobs may wait](../how-to/limits.md#how-many-jobs-may-wait) what
\`maxPending\` and \`maxBytes\` do; there are pages of [history](../how-to/history-and-results.md),
[\`redact\`](../how-to/privacy.md), [\`broadcast\`](../how-to/broadcast.md) and [\`linger\`](../explanation/lateness.md#linger-fewer-calls-per-job).
`;
}

/** @param {import('../../src/job/queue-settings.ts').QueueSettingName} word */
function row(word) {
  const { doc, allowed, limits } = settingOf(word);
  const flags = queueFlagsOf(word).map((flag) => `\`${flag.replaceAll('|', '\\|')}\``);
  return `| ${[
    `\`${word}\`<br>${doc}.`,
    allowed,
    flags.join('<br>') || '–',
    limits === undefined ? 'within 30 s' : 'at once',
    fieldsOfWord(word)
      .map((field) => `\`:${field}\``)
      .join(' '),
  ].join(' | ')} |`;
}

/** @param {typeof groupLimitRows[number]} of @param {number} at */
function groupRow({ name, row: { doc, allowed, each } }, at) {
  return `| \`${name}\`<br>${doc}. | ${allowed} | \`${groupExamples[at]}\` | ${each ? 'yes' : 'no'} |`;
}
