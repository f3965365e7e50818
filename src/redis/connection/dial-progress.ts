/**
 * How far the dialling of a connection gets while somebody waits for it. ioredis tells of the end of it, which is that of
 * the handshake over TLS, so the socket itself is asked whether anybody took it.
 */
import type { Redis } from 'ioredis';

export interface DialProgress {
  /** Somebody took a connection by TCP. */
  readonly accepted: boolean;
  /** Commands could be sent: over TLS the handshake was through. */
  readonly connected: boolean;
  /** A connection that was so far was closed. */
  readonly hungUp: boolean;
}

/** What counts is all the time of the wait, and how far a connection is that was opened before. */
export function watchDialing(redis: Redis): { readonly progress: DialProgress; readonly stop: () => void } {
  const progress = { accepted: false, connected: redis.status === 'connect', hungUp: false };
  const onAccepted = () => {
    progress.accepted = true;
  };
  const look = () => {
    const stream: typeof redis.stream | undefined = redis.stream;
    if (stream?.connecting) stream.once('connect', onAccepted);
    else if (stream && !stream.destroyed) onAccepted();
  };
  // The socket is made some ticks after this event.
  const onConnecting = () => setImmediate(look);
  const onConnect = () => {
    progress.connected = true;
  };
  const onClose = () => {
    progress.hungUp ||= progress.connected;
  };
  redis.on('connecting', onConnecting).on('connect', onConnect).on('close', onClose);
  onConnecting();
  return {
    progress,
    stop: () => redis.off('connecting', onConnecting).off('connect', onConnect).off('close', onClose),
  };
}
