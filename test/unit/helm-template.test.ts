/** The part of Go's templates that renders the chart: each expectation is what Go, Sprig and Helm document of the same word. */
import { describe, expect, test } from 'vitest';
import { renderTemplates } from '../../scripts/generate/helm.mjs';

const root = {
  Values: {
    name: 'shop',
    count: 3,
    none: '',
    off: false,
    list: ['a', 'b'],
    rows: [{ id: 1 }, { id: 2 }],
    tree: { b: 1, a: 'off' },
  },
  Release: { Name: 'r' },
  Files: { Get: (name: string) => `groups: [${name}]` },
};
const render = (text: string, more: Readonly<Record<string, string>> = {}) =>
  renderTemplates({ templates: { page: text, ...more }, root }).page;

describe('a template', () => {
  test.for<readonly [template: string, text: string]>([
    ['{{ .Values.name }}:{{ $.Values.count }}', 'shop:3'],
    ['a {{- .Values.name -}} b', 'ashopb'],
    ['a\n  {{- /* said to nobody */ -}}\n  b', 'ab'],
    ['{{ if .Values.off }}on{{ else if .Values.none }}some{{ else }}none{{ end }}', 'none'],
    ['{{ if not .Values.off }}{{ if .Values.missing }}a{{ else }}b{{ end }}{{ end }}', 'b'],
    ['{{ with .Values.tree }}{{ .b }}{{ $.Release.Name }}{{ end }}{{ with .Values.none }}x{{ end }}', '1r'],
    ['{{ range .Values.list }}[{{ . }}]{{ end }}', '[a][b]'],
    ['{{ range .Values.rows }}{{ if .id }}{{ .id }}{{ end }}{{ end }}', '12'],
    ['{{ .Values.none | default .Values.name | quote }}', '"shop"'],
    ['{{ add .Values.count 10 }} {{ .Values.count | quote }}', '13 "3"'],
    ['{{ join "|" .Values.list | quote }}', '"a|b"'],
    ['{{ has "a" .Values.list }} {{ has "c" .Values.list }}', 'true false'],
    ['x:{{ toYaml .Values.tree | nindent 2 }}', 'x:\n  a: "off"\n  b: 1'],
    ['{{ "a" | sha256sum }}', 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'],
    ['{{ range (fromYaml (.Files.Get "one")).groups }}{{ . }}{{ end }}', 'one'],
    ['{{ include "who" .Values }}{{ define "who" }}{{ .name }}/{{ $.count }}{{ end }}', 'shop/3'],
    ['{ {{- .Values.name -}} }', '{shop}'],
  ])('%s comes to what Helm makes of it', ([template, text]) => {
    expect(render(template)).toBe(text);
  });

  test('whose name begins with _ defines words for the others and is none itself', () => {
    const templates = { '_words.tpl': '{{ define "word" }}w{{ end }}', page: '{{ include "word" . }}' };
    expect(renderTemplates({ templates, root })).toEqual({ page: 'w' });
  });
});

test.for<readonly [template: string, error: string]>([
  ['{{ .Values.nmae }}', 'page: there is no .Values.nmae'],
  ['{{ if .Value.name }}a{{ end }}', 'there is no .Value.name'],
  ['{{ .Values.tree }}', 'is no text'],
  ['{{ upper .Values.name }}', 'upper is no function'],
  ['{{ include "nobody" . }}', 'nothing defines nobody'],
  ['{{ range .Values.name }}a{{ end }}', 'is no list'],
  ['{{ if .Values.name }}a', 'has no end'],
  ['a{{ end }}', 'ends nothing'],
  ['{{ .Values.name ~ }}', 'cannot be read here'],
  ['{{ .Values.name | "a" }}', 'no function'],
  ['{{ (.Values.name }}', 'is not closed'],
  ['{{ .Values.name ) }}', 'is not expected'],
])('%s is an error and no guess', ([template, error]) => {
  expect(() => render(template)).toThrow(error);
});
