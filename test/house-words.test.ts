/** The pages of the dashboard speak by their files of words: nothing that a person reads stands in the code of a page. */
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { read, walk } from './support/repository.ts';

/** Attributes that a person reads or hears. */
const READ = new Set([
  'title',
  'aria-label',
  'placeholder',
  'alt',
  'label',
  'columns',
  'of',
  'yes',
  'no',
  'say',
  'text',
]);
/** A word has a letter beside another one. Signs, units of code and single letters are none. */
const WORD = /\p{L}{2}/u;

/** Where each text of a page stands that is none of its words. */
function textsOf(path: string, text: string): readonly string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const note = (node: ts.Node, said: string) => {
    if (!WORD.test(said.replaceAll('duestream', '')) || isCode(node)) return;
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    found.push(`${path}:${line + 1} ${said.trim().slice(0, 40)}`);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node)) note(node, node.text);
    if (ts.isJsxAttribute(node) && isRead(node) && node.initializer) sayAll(node.initializer, note);
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent) && node.expression) sayAll(node.expression, note);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** What a sign is of is the name of a state, and no text. */
const isRead = ({ name, parent }: ts.JsxAttribute): boolean =>
  READ.has(name.getText()) && !(name.getText() === 'of' && parent.parent.tagName.getText() === 'State');

/** Texts that an expression may come to: `a`, `a${b}`, `c ? 'a' : 'b'`. Texts among the arguments of a call are not said. */
function sayAll(node: ts.Node, note: (node: ts.Node, said: string) => void): void {
  if (ts.isStringLiteralLike(node)) note(node, node.text);
  else if (ts.isTemplateExpression(node)) note(node, partsOf(node).join(' '));
  else for (const one of outcomesOf(node)) sayAll(one, note);
}

const partsOf = ({ head, templateSpans }: ts.TemplateExpression): readonly string[] => [
  head.text,
  ...templateSpans.map(({ literal }) => literal.text),
];

/** What an expression may come to, or consists of. */
function outcomesOf(node: ts.Node): readonly ts.Node[] {
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse];
  if (ts.isBinaryExpression(node)) return isJoined(node) ? [node.left, node.right] : [];
  if (ts.isPropertyAssignment(node)) return [node.initializer];
  return CONTAINERS.some((is) => is(node)) ? node.getChildren().flatMap((one) => [...listed(one)]) : [];
}

const CONTAINERS = [
  ts.isParenthesizedExpression,
  ts.isJsxExpression,
  ts.isArrayLiteralExpression,
  ts.isObjectLiteralExpression,
  ts.isSpreadElement,
];

const listed = (node: ts.Node): readonly ts.Node[] =>
  node.kind === ts.SyntaxKind.SyntaxList ? node.getChildren() : [node];

const isJoined = ({ operatorToken: { kind } }: ts.BinaryExpression): boolean =>
  [ts.SyntaxKind.PlusToken, ts.SyntaxKind.QuestionQuestionToken, ts.SyntaxKind.BarBarToken].includes(kind);

/** What is typed into a terminal or a file is the same in each language. */
function isCode(node: ts.Node): boolean {
  for (let one: ts.Node | undefined = node; one; one = one.parent) {
    if (ts.isJsxElement(one) && /^<(code|kbd|pre)\b/.test(one.openingElement.getText())) return true;
  }
  return false;
}

const pages = walk('src/dashboard').filter((path) => path.endsWith('.tsx'));

describe('a page', () => {
  test.each(pages)('has no text of its own: %s', (path) => {
    expect(textsOf(path, read(path))).toEqual([]);
  });

  test('that has one is found', () => {
    const found = (code: string) => textsOf('a.tsx', code).map((one) => one.replace(/^\S+ /, ''));
    expect(found('const a = <p>Some text</p>;')).toEqual(['Some text']);
    expect(found('const a = <p title="Some text" class="some class" />;')).toEqual(['Some text']);
    expect(found('const a = <p title={b + " jobs"}>{c ? "one" : t("two")}</p>;')).toEqual(['jobs', 'one']);
    expect(found('const a = <p>{words.now.title} · <code>npm test</code></p>;')).toEqual([]);
  });
});
