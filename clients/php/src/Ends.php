<?php

declare(strict_types=1);

namespace Duestream;

/** What a handler returned or threw → what `settle` takes. */
final class Ends
{
    /** A call with a longer text is refused. */
    private const ERROR_CHARS = 2000;

    /** @return array<string, mixed> */
    public static function ofResult(mixed $result): array
    {
        $isJson = $result !== null && json_encode($result) !== false;
        return ['end' => 'complete'] + ($isJson ? ['result' => $result] : []);
    }

    /** @return array<string, mixed> */
    public static function ofThrown(\Throwable $thrown): array
    {
        if ($thrown instanceof Defer) {
            $closes = $thrown->close === null ? [] : ['close' => $thrown->close];
            $reason = self::cut($thrown->getMessage(), self::ERROR_CHARS);
            return ['end' => 'defer', 'delay' => self::ms($thrown->seconds), 'reason' => $reason] + $closes;
        }
        $more = $thrown instanceof Fatal ? ['fatal' => true] : [];
        $more += $thrown instanceof RetryIn ? ['retryIn' => self::ms($thrown->seconds)] : [];
        return [
            'end' => 'fail',
            'error' => self::cut($thrown->getMessage(), self::ERROR_CHARS) ?: $thrown::class,
            'kind' => self::cut($thrown::class, 200),
            'stack' => self::cut($thrown->getTraceAsString(), self::ERROR_CHARS),
        ] + $more;
    }

    public static function cut(string $text, int $chars): string
    {
        return preg_match('/^.{0,' . $chars . '}/su', $text, $found) === 1 ? $found[0] : substr($text, 0, $chars);
    }

    private static function ms(float $seconds): int
    {
        return max(0, (int) round($seconds * 1000));
    }
}
