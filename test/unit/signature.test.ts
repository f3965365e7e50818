import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { signWebhook, verifyWebhook, type WebhookBody, type WebhookHeaders } from '../../src/dispatch/signature.ts';

// What the libraries of the standard test themselves with: the one in JavaScript signs this call so.
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const BODY = '{"test": 2432232314}';
const AT = new Date(1_614_265_330_000);
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

/** Signed now, as the library in use asks its own clock. */
const signed = (secrets: string | readonly string[], body: WebhookBody = BODY) =>
  ({ ...signWebhook({ id: ID, body }, secrets) }) as const;

describe('a signed call', () => {
  test('has the signature that the standard gives as its example', () => {
    expect(signWebhook({ id: ID, body: BODY, at: AT }, SECRET)).toEqual({
      'webhook-id': ID,
      'webhook-timestamp': '1614265330',
      'webhook-signature': SIGNATURE,
    });
    expect(new Webhook(SECRET).sign(ID, AT, BODY)).toBe(SIGNATURE);
  });

  test('is accepted by the library of the standard, whichever its secret, its text and its bytes', () => {
    for (const bytes of [24, 32, 33, 34, 64]) {
      const secret = `whsec_${randomBytes(bytes).toString('base64')}`;
      for (const body of ['{}', '"é – 𝛑"', JSON.stringify({ at: 1, text: 'x'.repeat(100_000) })]) {
        const headers = signed(secret, body);
        expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
        expect(verifyWebhook(signed(secret, Buffer.from(body)), body, secret).id).toBe(ID);
      }
    }
  });

  test('of the library of the standard is accepted here', () => {
    const at = new Date();
    const headers = {
      'webhook-id': ID,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign(ID, at, BODY),
    };
    expect(verifyWebhook(headers, BODY, SECRET)).toEqual({
      id: ID,
      sentAt: new Date(Math.floor(at.getTime() / 1000) * 1000),
    });
  });

  test('carries one signature for each secret, so receivers with the old one and with the new one both accept it', () => {
    const headers = signed([OTHER, SECRET]);
    expect(headers['webhook-signature'].split(' ')).toHaveLength(2);
    for (const secret of [SECRET, OTHER]) {
      expect(new Webhook(secret).verify(BODY, headers)).toEqual({ test: 2_432_232_314 });
      expect(verifyWebhook(headers, BODY, secret).id).toBe(ID);
    }
    // The receiver changes first, or the sender does: each knows both for a while.
    expect(verifyWebhook(signed(SECRET), BODY, [OTHER, SECRET]).id).toBe(ID);
    expect(verifyWebhook(signed(OTHER), BODY, [OTHER, SECRET]).id).toBe(ID);
    expect(() => verifyWebhook(signed(SECRET), BODY, OTHER)).toThrow(/none of its signatures/);
  });

  test('that is tried again after six minutes carries the time of that try', () => {
    const later = new Date(AT.getTime() + 360_000);
    const [first, second] = [AT, later].map((at) => signWebhook({ id: ID, body: BODY, at }, SECRET));
    expect(second?.['webhook-id']).toBe(first?.['webhook-id']);
    expect(verifyWebhook({ ...second }, BODY, SECRET, { at: later }).sentAt).toEqual(later);
    expect(() => verifyWebhook({ ...first }, BODY, SECRET, { at: later })).toThrow(
      'it was sent 360 s before now; allowed: 300 s',
    );
  });

  test.each([
    ['an id with a full stop, which could be taken for the end of the id', { id: 'a.1' }, /^id of a call is "a\.1"/],
    ['no id', { id: '' }, /^id of a call is ""/],
    ['an id with a space', { id: 'a b' }, /^id of a call/],
    ['an id with the end of a line', { id: 'a\nb' }, /^id of a call/],
    ['an id that no header can carry', { id: 'größe' }, /^id of a call/],
  ])('is not made with %s', (_, message, why) => {
    expect(() => signWebhook({ body: BODY, ...message }, SECRET)).toThrow(why);
  });

  test.each([
    ['none', undefined, /^secrets are a value of type undefined/],
    ['none of a list', [], /^secrets are 0 secrets/],
    ['eleven', Array.from({ length: 11 }, () => SECRET), /^secrets are 11 secrets/],
    ['one without its prefix', SECRET.slice('whsec_'.length), /^secret 1 is not written so/],
    ['one that is no base64', 'whsec_geheim!', /^secret 1 is not written so/],
    ['one of 23 bytes', `whsec_${Buffer.alloc(23, 1).toString('base64')}`, /^secret 1 is 23 bytes long/],
    ['one of 65 bytes', `whsec_${Buffer.alloc(65, 1).toString('base64')}`, /^secret 1 is 65 bytes long/],
    ['a second one that is empty', [SECRET, ''], /^secret 2 is not written so/],
  ])('is neither made nor verified with a wrong secret, which no message quotes: %s', (_, secrets, why) => {
    for (const act of [
      () => signWebhook({ id: ID, body: BODY }, secrets),
      () => verifyWebhook(signed(SECRET), BODY, secrets),
    ]) {
      expect(act).toThrow(why);
      expect(act).not.toThrow(/geheim|MfKQ/);
    }
  });
});

describe('a call that came is refused', () => {
  const good = () => ({ ...signWebhook({ id: ID, body: BODY, at: AT }, SECRET) });
  const verified = (headers: WebhookHeaders, body: WebhookBody = BODY) =>
    verifyWebhook(headers, body, SECRET, { at: AT });

  test.each([
    ['without an id', { 'webhook-id': undefined }, 'header webhook-id came 0 times'],
    ['without a time', { 'webhook-timestamp': undefined }, 'header webhook-timestamp came 0 times'],
    ['without a signature', { 'webhook-signature': undefined }, 'header webhook-signature came 0 times'],
    ['with two ids', { 'webhook-id': [ID, 'other'] }, 'header webhook-id came 2 times'],
    ['with two ids by other letters', { 'Webhook-Id': 'other' }, 'header webhook-id came 2 times'],
    ['with an empty time', { 'webhook-timestamp': '' }, 'webhook-timestamp is ""'],
    ['with a time that is no number', { 'webhook-timestamp': 'hello' }, 'webhook-timestamp is "hello"'],
    ['with a part of a second', { 'webhook-timestamp': '1614265330.0' }, 'webhook-timestamp is "1614265330.0"'],
    ['with a time in hexadecimals', { 'webhook-timestamp': '0x60379432' }, 'webhook-timestamp is "0x60379432"'],
    ['that is a second too old', { 'webhook-timestamp': '1614265029' }, 'it was sent 301 s before now'],
    ['that is a second too early', { 'webhook-timestamp': '1614265631' }, 'it was sent 301 s after now'],
    ['of another time', { 'webhook-timestamp': '1614265331' }, 'none of its signatures'],
    ['with another id', { 'webhook-id': 'msg_other' }, 'none of its signatures'],
    ['with an id that has a full stop', { 'webhook-id': 'msg.1' }, 'webhook-id is "msg.1"'],
    ['with an empty signature', { 'webhook-signature': '' }, 'none of its signatures'],
    ['with a signature of nothing', { 'webhook-signature': 'v1,' }, 'none of its signatures'],
    ['with a part of the signature', { 'webhook-signature': SIGNATURE.slice(0, -10) }, 'none of its signatures'],
    [
      'with a signature of another version',
      { 'webhook-signature': `v1a,${SIGNATURE.slice(3)}` },
      'none of its signatures',
    ],
    ['without a version', { 'webhook-signature': SIGNATURE.slice(3) }, 'none of its signatures'],
    [
      'with its signature behind twenty others',
      { 'webhook-signature': `${'v1,AAAA '.repeat(20)}${SIGNATURE}` },
      'none of its signatures',
    ],
  ])('%s', (_, change, why) => {
    expect(() => verified({ ...good(), ...change })).toThrow(why);
  });

  test('with another body, and with one that a parser made', () => {
    expect(() => verified(good(), `${BODY} `)).toThrow('give the body as it came, before a parser');
    expect(() => verified(good(), JSON.stringify(JSON.parse(BODY)))).toThrow('none of its signatures');
    // What express.json() leaves in the place of a body has no type.
    expect(() => verified(good(), JSON.parse(BODY))).toThrow('body is of type object; allowed: the text or the bytes');
  });

  test('when a part of its id is taken for its time', () => {
    // The texts that are signed are the same: `a.1614265330.1614265330.{}`.
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
    const text = 'a.1614265330.1614265330.{}';
    const headers = {
      'webhook-id': 'a.1614265330',
      'webhook-timestamp': '1614265330',
      'webhook-signature': `v1,${createHmac('sha256', key).update(text).digest('base64')}`,
    };
    expect(() => verified(headers, '{}')).toThrow('webhook-id is "a.1614265330"');
  });

  test('with an option that there is not', () => {
    // @ts-expect-error Misspelt.
    expect(() => verifyWebhook(good(), BODY, SECRET, { tolerence: 1 })).toThrow(/did you mean tolerance/);
  });
});

describe('a call that came is accepted', () => {
  test.each([
    ['at the end of what is tolerated', { 'webhook-timestamp': '1614265030' }],
    ['from a clock that is before', { 'webhook-timestamp': '1614265630' }],
  ])('%s', (_, change) => {
    const seconds = Number(change['webhook-timestamp']);
    const headers = signWebhook({ id: ID, body: BODY, at: new Date(seconds * 1000) }, SECRET);
    expect(verifyWebhook({ ...headers }, BODY, SECRET, { at: AT }).sentAt).toEqual(new Date(seconds * 1000));
    expect(() => verifyWebhook({ ...headers }, BODY, SECRET, { at: AT, tolerance: '299s' })).toThrow('allowed: 299 s');
  });

  test('among signatures of other versions and other senders', () => {
    const headers = signWebhook({ id: ID, body: BODY, at: AT }, SECRET);
    const mixed = `v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,xyz v1a,hnO3 ${SIGNATURE}`;
    expect(verifyWebhook({ ...headers, 'webhook-signature': mixed }, BODY, SECRET, { at: AT }).id).toBe(ID);
  });

  test('from a request of Node, and from one of the Fetch API', async () => {
    const seen: { readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];
    const server = createServer((request, response) => {
      void buffer(request).then((body) => {
        seen.push({ headers: request.headers, body });
        response.end();
      });
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const body = '{"é":"ü"}';
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers: signed(SECRET, body) });
    server.close();
    const [call] = seen;
    expect(verifyWebhook(call?.headers ?? {}, call?.body ?? '', SECRET).id).toBe(ID);
    const request = new Request('https://example.org', { method: 'POST', body, headers: signed(SECRET, body) });
    expect(verifyWebhook(request.headers, await request.text(), SECRET).id).toBe(ID);
  });
});
