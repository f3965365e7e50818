<?php

declare(strict_types=1);

namespace Duestream;

/** One start of one job, in the process of its handler. `token` only grows: a store refuses one that is lower than one it has. */
final class Job
{
    public readonly string $id;
    public readonly string $name;
    /** With a `codec`: as it was stored. */
    public readonly mixed $data;
    public readonly ?string $codec;
    public readonly string $token;
    public readonly int $attempt;
    public readonly int $failures;
    public readonly int $crashes;
    public readonly int $dueMs;
    public readonly int $timeoutMs;
    public readonly ?string $group;
    public readonly ?string $priority;
    /** @var array<string, string> */
    public readonly array $headers;
    private ?string $why = null;
    private string $heard = '';

    /**
     * @param array<string, mixed> $one as a claim has it
     * @param resource $line to the worker
     */
    public function __construct(array $one, private readonly mixed $line)
    {
        $this->id = (string) $one['id'];
        $this->name = (string) $one['name'];
        $this->data = $one['data'] ?? null;
        $this->codec = $one['codec'] ?? null;
        $this->token = (string) $one['token'];
        $this->attempt = (int) $one['attempt'];
        $this->failures = (int) $one['failures'];
        $this->crashes = (int) $one['crashes'];
        $this->dueMs = (int) $one['dueMs'];
        $this->timeoutMs = (int) $one['timeoutMs'];
        $this->group = $one['group'] ?? null;
        $this->priority = $one['priority'] ?? null;
        $this->headers = $one['headers'] ?? [];
        stream_set_blocking($line, false);
    }

    /** Why the handler is to end: "cancelled", "lease lost", "timeout" or "shutdown"; null: it is not. */
    public function stopped(): ?string
    {
        while (is_string($text = fgets($this->line))) {
            $this->heard .= $text;
            if (str_ends_with($this->heard, "\n")) {
                $this->why ??= trim($this->heard);
                $this->heard = '';
            }
        }
        // Without its worker nobody extends the run.
        if ($this->why === null && feof($this->line)) {
            $this->why = 'lease lost';
        }
        return $this->why;
    }

    /** To be called now and then by a handler that takes long. @throws Stopped */
    public function check(): void
    {
        if ($this->stopped() !== null) {
            throw new Stopped((string) $this->why);
        }
    }

    /** How far the handler is, from 0 to 1: the next beat says it. */
    public function progress(float $fraction, ?string $text = null): void
    {
        $said = ['progress' => min(1.0, max(0.0, $fraction))];
        if ($text !== null) {
            $said['text'] = Ends::cut($text, 200);
        }
        Line::say($this->line, ['told' => $said]);
    }
}
