<?php

declare(strict_types=1);

namespace Duestream;

/** Throw it to put the job off, without a failure. `close`: nobody of its "group" or "queue" starts meanwhile. */
final class Defer extends \RuntimeException
{
    public function __construct(
        public readonly float $seconds,
        string $reason = 'deferred',
        public readonly ?string $close = null,
    ) {
        parent::__construct($reason);
    }
}
