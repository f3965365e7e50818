/** The options of the HTTP API: who may ask, by which names, how much, and with which certificate. */
import { z } from 'zod';
import { option, whole } from './table.ts';

const PATH = { kind: 'text', allowed: 'a path of at most 4096 characters, or empty' } as const;
const path = (doc: string) => option(z.string().max(4096).default(''), { ...PATH, doc });
const TOKENS = ['beyond-loopback', 'always'] as const;
const MINUTES = ['auto', 'on', 'off'] as const;

export const api = {
  api: option(z.enum(['on', 'off']).default('on'), {
    kind: 'text',
    doc: 'Whether the HTTP API answers below /v1.',
    allowed: 'on, off',
  }),
  tokens: option(z.enum(TOKENS).default('beyond-loopback'), {
    kind: 'text',
    doc: 'Where the HTTP API needs a token of "duestream tokens create": at other addresses than loopback, or always.',
    allowed: TOKENS.join(', '),
  }),
  allowedHosts: option(
    z
      .array(z.string().regex(/^[A-Za-z0-9.:-]{1,255}$/))
      .max(100)
      .default([]),
    {
      kind: 'list',
      doc: 'The names by which the HTTP API may be asked, besides http.host and those of loopback; without a port.',
      allowed: 'at most 100 host names or IP addresses',
    },
  ),
  allowedOrigins: option(
    z
      .array(z.string().regex(/^https?:\/\/[A-Za-z0-9.:[\]-]{1,255}$/))
      .max(100)
      .default([]),
    {
      kind: 'list',
      doc: 'The pages of other hosts that may use the HTTP API (CORS).',
      allowed: 'at most 100 origins such as https://ops.example.com',
    },
  ),
  minutes: option(z.enum(MINUTES).default('auto'), {
    kind: 'text',
    doc: 'Whether leaders keep counts and lateness by the minute for a day, for charts; auto: daemons that also answer the HTTP API do.',
    allowed: MINUTES.join(', '),
  }),
  cert: path('With TLS: the file with the certificate that the server shows; it needs http.key.'),
  key: path('With TLS: the file with the key of http.cert.'),
  bodyBytesMax: whole(4 * 1024 * 1024, {
    min: 1024,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    doc: 'How large the body of a request to the HTTP API may be.',
  }),
  batchMax: whole(1000, { min: 1, max: 10_000, doc: 'How many jobs one request to the HTTP API may name.' }),
  rateMax: whole(200, {
    min: 1,
    max: 1_000_000,
    doc: 'How many requests per second a caller of the HTTP API may send.',
  }),
};
