/** Runs the application until a signal. Signals belong to the program, not to a library in it. */
import { startApp } from './app.mjs';

const { DUESTREAM_REDIS_URL: redis = 'redis://127.0.0.1:6379', PORT: port = '8080' } = process.env;
const app = await startApp({ redis, port: Number(port), remindAfter: '10s' });
console.log(`listening on http://127.0.0.1:${app.port}`);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.stop());
