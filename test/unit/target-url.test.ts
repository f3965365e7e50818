import { describe, expect, test } from 'vitest';
import { readTargetUrl } from '../../src/job/target-url.ts';

describe('a URL that is read', () => {
  test.each([
    ['https://api.example.com', { host: 'api.example.com', port: 443, authority: 'api.example.com', path: '/' }],
    ['https://api.example.com:443/a', { port: 443, authority: 'api.example.com', path: '/a' }],
    [
      'HTTPS://API.Example.com./due?tenant=4&x=%20',
      { host: 'api.example.com', authority: 'api.example.com', path: '/due?tenant=4&x=%20' },
    ],
    ['https://api.example.com?x', { path: '/?x' }],
    ['http://api.example.com:8080/', { isTls: false, port: 8080, authority: 'api.example.com:8080' }],
    ['https://93.184.216.34/', { host: '93.184.216.34', version: 4, authority: '93.184.216.34' }],
    ['https://[2606:4700::1111]:8443/', { host: '2606:4700::1111', version: 6, authority: '[2606:4700::1111]:8443' }],
    ['https://xn--bcher-kva.example/', { host: 'xn--bcher-kva.example', version: 0 }],
    ['https://_dmarc.example.com/a/../b', { path: '/b' }],
    ['http://localhost:8080/', { host: 'localhost' }],
  ])('%s', (text, parts) => {
    expect(readTargetUrl(text, 'url')).toMatchObject(parts);
  });
});

describe('a text that is no URL of a target', () => {
  test.each([
    ['', 'does not begin with https://'],
    ['api.example.com/due', 'does not begin with https://'],
    ['//api.example.com/', 'does not begin with https://'],
    ['https:api.example.com', 'does not begin with https://'],
    ['https:///api.example.com/', 'does not begin with https://'],
    ['file:///etc/passwd', 'does not begin with https://'],
    ['ftp://example.com/', 'does not begin with https://'],
    ['gopher://example.com:6379/_FLUSHALL', 'does not begin with https://'],
    ['unix:/var/run/docker.sock', 'does not begin with https://'],
    ['javascript:alert(1)', 'does not begin with https://'],
    [`https://example.com/${'a'.repeat(2048)}`, 'has 2068 characters'],
    ['https://a b.example/', 'has a space'],
    ['https://a.example/\r\nX: y', 'has a space'],
    ['https://bücher.example/', 'beyond ASCII'],
    ['https://①②⑦.0.0.1/', 'beyond ASCII'],
    ['https://127。0。0。1/', 'beyond ASCII'],
    ['https://１２７.0.0.1/', 'beyond ASCII'],
    ['https://user:pass@example.com/', 'has a user'],
    ['https://example.com@127.0.0.1/', 'has a user'],
    ['https://example.com\\@127.0.0.1/', 'has a character that URLs do not have'],
    ['https://127.0.0.1\\@example.com/', 'has a character that URLs do not have'],
    ['https://example.com#@127.0.0.1/', 'has a fragment'],
    ['https://example.com/#x', 'has a fragment'],
    ['https://127.0.0.1%00.example.com/', 'has a % in its host'],
    ['https://127.0.0.1%2f.example.com/', 'has a % in its host'],
    ['https://[fe80::1%25eth0]/', 'has a % in its host'],
    ['https://example.com:/', 'no port behind its colon'],
    ['https://:8080/', 'has no host'],
    ['https://a.example:80:90/', 'has no host'],
    ['https://[::1/', 'has no host'],
    ['https://a.example:99999/', 'no URL can be read'],
    ['https://127.1/', 'not written as 127.0.0.1'],
    ['https://127.0.1/', 'not written as 127.0.0.1'],
    ['https://0177.0.0.1/', 'not written as 127.0.0.1'],
    ['https://0x7f.0.0.1/', 'not written as 127.0.0.1'],
    ['https://0x7f000001/', 'not written as 127.0.0.1'],
    ['https://2130706433/', 'not written as 127.0.0.1'],
    ['https://017700000001/', 'not written as 127.0.0.1'],
    ['https://127.0.0.1./', 'not written as 127.0.0.1'],
    ['https://0/', 'not written as 0.0.0.0'],
    ['https://[0:0:0:0:0:0:0:1]/', 'not written as [::1]'],
    ['https://[::ffff:127.0.0.1]/', 'not written as [::ffff:7f00:1]'],
    ['https://1.2.3.4.5/', 'no URL can be read'],
    ['https://example.0x7f/', 'no URL can be read'],
    ['https://a..example/', 'has no host name'],
    ['https://-a.example/', 'has no host name'],
    ['https://a-.example/', 'has no host name'],
    [`https://${'a'.repeat(64)}.example/`, 'has no host name'],
    [`https://${'a.'.repeat(130)}example/`, 'has no host name'],
    ['https://a.example:6379/', 'goes to port 6379'],
    ['https://a.example:22/', 'goes to port 22'],
    ['https://a.example:0/', 'goes to port 0'],
    ['https://a.example:2375/', 'goes to port 2375'],
    ['https://a.example:10250/', 'goes to port 10250'],
  ])('%s %s', (text, why) => {
    expect(() => readTargetUrl(text, 'url')).toThrow(why);
  });

  test.each([[undefined], [4], [{}], [null]])('%j is none', (given) => {
    expect(() => readTargetUrl(given, 'url of target')).toThrow(
      /^url of target is .*, which is no text; allowed: a URL such as/,
    );
  });
});
