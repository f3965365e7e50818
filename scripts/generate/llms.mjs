/**
 * `llms.txt`: every page of the documentation with its first sentence, for programs that read it (https://llmstxt.org). The list and its
 * headings are those of `docs/README.md`, so a page that people find is found here too. Pure.
 */
import { join, normalize } from 'node:path';

const LIST = 'docs/README.md';

/** @param {(path: string) => string} textOf a file of the repository */
export function renderLlms(textOf) {
  const [, ...sections] = textOf(LIST).split(/^## /m);
  const { title, sentence } = aboutOf(textOf('README.md'));
  /** Each page stands where the list names it first. @type {Set<string>} */
  const told = new Set();
  const parts = sections.map((section) => {
    const lines = pagesIn(section)
      .filter((path) => !told.has(path))
      .map((path) => {
        told.add(path);
        return lineOf(path, textOf(path));
      });
    return lines.length === 0 ? '' : `## ${section.slice(0, section.indexOf('\n'))}\n\n${lines.join('\n')}\n`;
  });
  const head = `# ${title}\n\n> ${sentence}\n\n${HOW}\n`;
  return `${[head, ...parts.filter((part) => part !== '')].join('\n')}`;
}

const HOW = `Each page is Markdown, in the repository and in the npm package. Begin with the [README](README.md). The HTTP API is described by
[openapi.json](docs/reference/openapi.json); agents use a running installation by \`duestream mcp\`: see [agents](docs/how-to/agents.md).`;

/** The pages that a part of the list names, from the root. @param {string} section */
function pagesIn(section) {
  const links = [...section.matchAll(/\]\(([^)#\s]+\.md)(?:#[^)]*)?\)/g)].map(([, to = '']) => to);
  return [...new Set(links.filter((to) => !/^[a-z]+:/.test(to)).map((to) => normalize(join('docs', to))))];
}

/** @param {string} path @param {string} text */
function lineOf(path, text) {
  const { title, sentence } = aboutOf(text);
  return `- [${title}](${path})${sentence === '' ? '' : `: ${sentence}`}`;
}

/** The heading of a page, and the first sentence below it. @param {string} text */
function aboutOf(text) {
  const plain = text.replace(/<!--[\s\S]*?-->|^```[\s\S]*?^```$/gm, '');
  const title = /^# (.+)$/m.exec(plain)?.[1]?.trim() ?? '';
  const [below = ''] = plain.slice(plain.indexOf(`# ${title}`) + title.length + 2).split(/^## /m);
  const paragraphs = below.split(/\n\s*\n/).map((paragraph) => paragraph.trim());
  const first = paragraphs.find((paragraph) => /^(?:[A-Za-z`["]|\*\*)/.test(paragraph)) ?? '';
  return { title: unlinked(title), sentence: sentenceOf(unlinked(first)) };
}

/** Up to the first full stop that ends a sentence. @param {string} text */
const sentenceOf = (text) => /^.*?[.:?](?=\s|$)/s.exec(text)?.[0].replace(/:$/, '.') ?? text;

/** As one line, with the words of links and without their targets. @param {string} text */
const unlinked = (text) =>
  text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
    .replace(/\s+/g, ' ')
    .trim();
