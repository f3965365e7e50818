<?php

declare(strict_types=1);

namespace Duestream;

/** Throw it to fail, and to be tried again after so many seconds instead of the backoff of the queue. */
final class RetryIn extends \RuntimeException
{
    public function __construct(public readonly float $seconds, string $message = 'failed')
    {
        parent::__construct($message);
    }
}
