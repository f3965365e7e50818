<?php

declare(strict_types=1);

namespace Duestream;

/** Between the worker and the process of a handler: lines of JSON one way, reasons to stop the other way. */
final class Line
{
    /**
     * @param resource $line
     * @param array<string, mixed> $said
     */
    public static function say(mixed $line, array $said): void
    {
        $text = json_encode($said, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR) . "\n";
        stream_set_blocking($line, true);
        for ($rest = $text; $rest !== ''; $rest = substr($rest, $written)) {
            $written = @fwrite($line, $rest);
            if ($written === false || $written === 0) {
                break;
            }
        }
        stream_set_blocking($line, false);
    }
}
