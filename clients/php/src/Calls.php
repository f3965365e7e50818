<?php

declare(strict_types=1);

namespace Duestream;

/**
 * The calls of one worker, several at a time. Each is sent again, as it is, until it is answered: to the next daemon each time, after
 * a pause. Nothing waits here but `turn`.
 */
final class Calls
{
    private const PAUSE_MS = ['first' => 50, 'last' => 5000];
    private \CurlMultiHandle $multi;
    /** @var array<int, array{verb: string, body: array<string, mixed>, done: \Closure, tries: int, timeoutMs: int, sent: int, dueMs: float, pauseMs: int, handle: ?\CurlHandle, afterMs: int}> */
    private array $open = [];
    private int $last = 0;
    private int $turn;

    /** @param list<string> $urls below which the verbs are */
    public function __construct(private readonly array $urls, private readonly ?string $token)
    {
        $this->multi = curl_multi_init();
        $this->turn = random_int(0, count($urls) - 1);
    }

    public static function nowMs(): float
    {
        return hrtime(true) / 1e6;
    }

    /**
     * @param array<string, mixed> $body
     * @param \Closure(?array<string, mixed>): void $done hears the answer; null: nobody answered within so many tries
     * @param int $tries 0: for ever
     */
    public function send(string $verb, array $body, \Closure $done, int $tries = 0, int $timeoutMs = 10_000): void
    {
        $this->open[++$this->last] = [
            'verb' => $verb, 'body' => $body, 'done' => $done, 'tries' => $tries, 'timeoutMs' => $timeoutMs,
            'sent' => 0, 'dueMs' => 0.0, 'pauseMs' => self::PAUSE_MS['first'], 'handle' => null, 'afterMs' => 0,
        ];
    }

    public function has(string ...$verbs): bool
    {
        foreach ($this->open as $call) {
            if (in_array($call['verb'], $verbs, true)) {
                return true;
            }
        }
        return false;
    }

    /** Sends no claim any more, and forgets the one that waits. */
    public function dropClaims(): void
    {
        foreach ($this->open as $key => $call) {
            if ($call['verb'] === 'claim') {
                $this->close($key);
                unset($this->open[$key]);
            }
        }
    }

    /** Sends what is due, waits a little, and tells what was answered. @throws Refused */
    public function turn(int $waitMs): void
    {
        foreach ($this->open as $key => $call) {
            if ($call['handle'] === null && $call['dueMs'] <= self::nowMs()) {
                $this->begin($key);
            }
        }
        curl_multi_exec($this->multi, $active);
        if ($active > 0) {
            curl_multi_select($this->multi, $waitMs / 1000);
            curl_multi_exec($this->multi, $active);
        } else {
            usleep($waitMs * 1000);
        }
        while ($ended = curl_multi_info_read($this->multi)) {
            foreach ($this->open as $key => $call) {
                if ($call['handle'] === $ended['handle']) {
                    $this->ended($key, $ended['result'] === CURLE_OK);
                }
            }
        }
    }

    private function begin(int $key): void
    {
        $call = &$this->open[$key];
        $handle = curl_init($this->urls[$this->turn % count($this->urls)] . '/' . $call['verb']);
        $headers = ['Content-Type: application/json', 'Expect:'];
        if ($this->token !== null) {
            $headers[] = "Authorization: Bearer $this->token";
        }
        $call['afterMs'] = 0;
        curl_setopt_array($handle, [
            CURLOPT_POST => true,
            CURLOPT_POSTFIELDS => json_encode($call['body'], JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE),
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT_MS => $call['timeoutMs'],
            CURLOPT_NOSIGNAL => true,
            // On a connection that it keeps, curl sends a call again by itself: at once, and without `again`.
            CURLOPT_FRESH_CONNECT => $call['verb'] !== 'beat',
            CURLOPT_FORBID_REUSE => $call['verb'] !== 'beat',
            CURLOPT_HEADERFUNCTION => function ($_, string $line) use ($key): int {
                if (preg_match('/^retry-after:\s*(\d+)/i', $line, $found) === 1) {
                    $this->open[$key]['afterMs'] = 1000 * (int) $found[1];
                }
                return strlen($line);
            },
        ]);
        $call['handle'] = $handle;
        curl_multi_add_handle($this->multi, $handle);
    }

    private function ended(int $key, bool $isWhole): void
    {
        $call = $this->open[$key];
        $handle = $call['handle'];
        $status = $isWhole ? curl_getinfo($handle, CURLINFO_RESPONSE_CODE) : 0;
        $answer = $isWhole ? json_decode((string) curl_multi_getcontent($handle), true) : null;
        $this->close($key);
        if ($status === 200 && is_array($answer)) {
            unset($this->open[$key]);
            ($call['done'])($answer);
            return;
        }
        if ($status >= 400 && $status < 500 && $status !== 429) {
            unset($this->open[$key]);
            throw new Refused($status, (string) ($answer['code'] ?? ''), (string) ($answer['detail'] ?? ''));
        }
        $this->again($key);
    }

    private function again(int $key): void
    {
        $call = &$this->open[$key];
        $this->turn++;
        $call['sent']++;
        if ($call['tries'] > 0 && $call['sent'] >= $call['tries']) {
            $done = $call['done'];
            unset($call, $this->open[$key]);
            $done(null);
            return;
        }
        if ($call['verb'] === 'claim') {
            $call['body']['again'] = true;
        }
        $jittered = $call['pauseMs'] * (0.5 + mt_rand() / mt_getrandmax() / 2);
        $call['dueMs'] = self::nowMs() + max($call['afterMs'], $jittered);
        $call['pauseMs'] = min(self::PAUSE_MS['last'], 2 * $call['pauseMs']);
    }

    private function close(int $key): void
    {
        $handle = $this->open[$key]['handle'];
        if ($handle !== null) {
            curl_multi_remove_handle($this->multi, $handle);
            curl_close($handle);
            $this->open[$key]['handle'] = null;
        }
    }
}
