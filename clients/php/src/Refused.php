<?php

declare(strict_types=1);

namespace Duestream;

/** A daemon refuses the call, and would refuse it again. */
final class Refused extends \RuntimeException
{
    public function __construct(public readonly int $status, public readonly string $problem, string $detail)
    {
        parent::__construct("$status $problem: $detail");
    }
}
