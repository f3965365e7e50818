<?php

declare(strict_types=1);

namespace Duestream;

/** A run as the worker has it: its process, the line to it, and until when it is ours. */
final class Run
{
    public ?int $pid = null;
    /** @var ?resource */
    public mixed $line = null;
    public string $heard = '';
    /** @var array<string, mixed> what the next beat says */
    public array $told = [];
    public ?string $why = null;
    public float $killMs = INF;
    /** @var ?array<string, mixed> */
    public ?array $end = null;

    /** @param array<string, mixed> $job as a claim has it */
    public function __construct(public readonly array $job, public float $untilMs)
    {
    }

    public function handle(): string
    {
        return (string) $this->job['run'];
    }

    public function isAtMostOnce(): bool
    {
        return (bool) ($this->job['begin'] ?? false);
    }

    /** Tells the handler to end, once; a handler that does not is killed after so long. */
    public function stop(string $why, int $graceMs): void
    {
        if ($this->why !== null) {
            return;
        }
        $this->why = $why;
        $this->killMs = Calls::nowMs() + $graceMs;
        if ($this->line !== null) {
            @fwrite($this->line, "$why\n");
        }
    }
}
