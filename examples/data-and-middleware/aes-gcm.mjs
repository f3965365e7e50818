// AES-256-GCM with a key id in front, so that keys can be changed while jobs wait: the last key encrypts.
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';

/** @param {Map<string, Buffer>} keys id → 64 bytes, one half to encrypt, one for nonces @returns {import('duestream').Codec} */
export function aesGcm(keys) {
  const [last, newest = Buffer.alloc(0)] = [...keys].at(-1) ?? [];
  return {
    name: 'aes-256-gcm',
    encode(text, { queue }) {
      const nonce = createHmac('sha256', newest.subarray(32)).update(`${queue} ${text}`).digest().subarray(0, 12);
      const cipher = createCipheriv('aes-256-gcm', newest.subarray(0, 32), nonce).setAAD(Buffer.from(queue));
      const bytes = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
      return `${last}.${bytes.toString('base64')}`;
    },
    decode(text, { queue }) {
      const [id = '', base64 = ''] = text.split('.');
      const [key, bytes] = [keys.get(id)?.subarray(0, 32), Buffer.from(base64, 'base64')];
      if (!key) throw new Error(`there is no key ${id}`);
      const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(queue));
      cipher.setAuthTag(bytes.subarray(-16));
      return Buffer.concat([cipher.update(bytes.subarray(12, -16)), cipher.final()]).toString();
    },
  };
}
