/**
 * Renders the command line as `docs/reference/cli.md`, from the program itself. Pure.  */

/** @typedef {import('commander').Command} Command */
/** @typedef {import('commander').Option} Option */
/** @typedef {(command: Command) => readonly string[]} ExamplesOf */

/**
 * @param {Command} program
 * @param {ExamplesOf} examplesOf
 */
export function renderCli(program, examplesOf) {
  const leaves = leavesOf(program);
  const list = leaves.map((command) => `| ${link(command)} | ${cell(command.description())} |`);
  return `<!-- Generated from src/cli by \`npm run generate\`; a test compares it. -->
# Command line

| command | does |
|---|---|
${list.join('\n')}

## What every command has

${flagTable(program.options.filter(({ long, hidden }) => long !== '--version' && !hidden))}

\`-h\` and \`--help\` show the help of a command or a group, \`-v\`, \`-V\` and \`--version\` print the version, at any place.

Which Redis: \`--redis\`, else \`DUESTREAM_REDIS_URL\` or the file of the configuration, else the development server of
this folder (\`.duestream/dev.json\`, written by \`duestream dev\`), else \`redis://127.0.0.1:6379\`.
All options that have no flag are in [the configuration](configuration.md).

| exit code | means |
|---|---|
| 0 | ok |
| 1 | failed: not found, not cancelled, a queue that is not empty, some lines refused, a failed check of \`doctor\`, damage that it did not repair |
| 64 | usage error: an unknown flag, a value outside its range |
| 69 | Redis is unavailable, refuses, or is out of memory |
| 78 | the configuration is wrong, or the namespace has [another schema](schema-versions.md) than this version knows |

An error is two lines on stderr: what is wrong, and what to do next. With \`--json\` it is
\`{"error":{"code":"not-found","message":"…"}}\` on stderr. Answers go to stdout, progress to stderr. Colours appear at a
terminal only, and never when \`NO_COLOR\` is set. Control characters in ids, errors and data are never printed.

${leaves.map((command) => section(command, examplesOf)).join('\n')}`;
}

/**
 * @param {Command} command
 * @param {ExamplesOf} examplesOf
 */
function section(command, examplesOf) {
  const words = wordsOf(command);
  const use = command.registeredArguments.map((argument) => {
    const text = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${text}>` : `[${text}]`;
  });
  const own = command.options.filter(({ hidden }) => !hidden);
  return `## ${words}

${sentence(command.description())}

\`\`\`sh
${words}${own.length > 0 ? ' [options]' : ''}${use.map((text) => ` ${text}`).join('')}
\`\`\`

${own.length > 0 ? `${flagTable(own)}\n\n` : ''}${examplesOf(command).length > 1 ? 'Examples' : 'Example'}:

\`\`\`sh
${examplesOf(command).join('\n')}
\`\`\`
`;
}

/** @param {readonly Option[]} options */
function flagTable(options) {
  return `| flag | meaning | default |\n|---|---|---|\n${options.map(flagRow).join('\n')}`;
}

/** @param {Option} option */
function flagRow({ flags, description, defaultValue, defaultValueDescription, argChoices }) {
  const choices = argChoices === undefined ? '' : `: ${argChoices.map((choice) => `\`${choice}\``).join(', ')}`;
  const fallback = defaultValue === undefined ? '–' : `\`${defaultValueDescription ?? defaultValue}\``;
  return `| \`${flags}\` | ${cell(description)}${choices} | ${fallback} |`;
}

/** @param {Command} command @returns {readonly Command[]} */
function leavesOf(command) {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

/** @param {Command} command @returns {string} */
function wordsOf(command) {
  return command.parent === null ? command.name() : `${wordsOf(command.parent)} ${command.name()}`;
}

/** @param {Command} command */
function link(command) {
  const words = wordsOf(command);
  return `[\`${words}\`](#${words.replaceAll(' ', '-')})`;
}

/** @param {string} text */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** @param {string} text */
const cell = (text) => text.replaceAll('|', '\\|');
