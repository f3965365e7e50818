<?php

declare(strict_types=1);

namespace Duestream;

/**
 * Claims jobs of one queue and runs them, each in a process of its own, at most `concurrency` at a time. This process only calls: a
 * handler that hangs holds up no beat, and one that dies ends its own job alone.
 *
 *  claim ─▶ (beat, where the answer came late) ─▶ (begin, at most once) ─▶ fork ─▶ handler ─▶ its end ─▶ settle, or the next claim
 *
 * What must always hold: a lease counts from when the call was sent that began or extended it; a run without a lease is stopped
 * and not settled.
 */
final class Worker
{
    private const RUNS_MAX = 80;
    /** A handler that was told to stop has so long; then its process is killed. */
    private const STOP_MS = 10_000;
    private const LOST = ['lease lost', 'timeout'];
    public readonly string $name;
    private readonly int $pid;
    private readonly Calls $calls;
    /** @var array<string, Run> */
    private array $runs = [];
    /** @var list<array<string, mixed>> */
    private array $ends = [];
    /** @var list<array<string, mixed>> ends that went with the claim that is under way */
    private array $claimed = [];
    private int $seq = 0;
    private float $leaseMs = 15_000;
    private float $beatMs = 5000;
    private float $beatenMs = 0;
    private bool $isStopping = false;

    /**
     * @param string|list<string> $urls one daemon or several, with `http.work` on
     * @param \Closure(Job): mixed $handler
     * @param ?string $token of `duestream tokens create --scope work`
     * @param float $grace seconds for handlers at a stop
     */
    public function __construct(
        string|array $urls,
        string $queue,
        private readonly \Closure $handler,
        ?string $token = null,
        private readonly int $concurrency = 10,
        string $label = 'php',
        private readonly float $wait = 20.0,
        private readonly float $grace = 25.0,
    ) {
        $base = fn (string $url): string => rtrim($url, '/') . '/v1/queues/' . rawurlencode($queue);
        $this->calls = new Calls(array_map($base, array_values((array) $urls)), $token);
        $this->name = "h-$label-" . bin2hex(random_bytes(16));
        $this->pid = getmypid();
    }

    /** Works until SIGTERM, SIGINT or `stop`. @throws Refused when a daemon refuses the worker */
    public function run(): void
    {
        if (getmypid() !== $this->pid) {
            throw new \LogicException('this process was forked: make a Worker after the fork, it has a name of its own');
        }
        pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT] as $signal) {
            pcntl_signal($signal, fn () => $this->stop());
        }
        $this->beatenMs = Calls::nowMs();
        try {
            while (!$this->isStopping) {
                $this->claim();
                $this->turn();
            }
            $this->leave();
        } finally {
            foreach ($this->runs as $run) {
                $run->pid !== null && posix_kill($run->pid, SIGKILL);
            }
        }
    }

    /** Claims no more. `run` lets handlers end, and gives back what is left. */
    public function stop(): void
    {
        $this->isStopping = true;
    }

    private function turn(): void
    {
        $this->calls->turn(10);
        $this->reap();
        $this->settle();
        $this->beat();
        foreach ($this->runs as $run) {
            if ($this->isExtended($run) && Calls::nowMs() >= $run->untilMs) {
                $run->stop('lease lost', self::STOP_MS);
            }
            if ($run->pid !== null && Calls::nowMs() >= $run->killMs) {
                posix_kill($run->pid, SIGKILL);
            }
        }
    }

    private function claim(): void
    {
        $free = $this->concurrency - count($this->runs);
        if ($free < 1 || $this->calls->has('claim')) {
            return;
        }
        $this->seq++;
        $this->claimed = $this->takeEnds();
        $sentMs = Calls::nowMs();
        $body = [
            'worker' => $this->name,
            'seq' => $this->seq,
            'max' => min(self::RUNS_MAX, $free),
            'running' => count($this->runs),
            'wait' => (int) ($this->wait * 1000),
            'ends' => $this->claimed,
        ];
        $done = function (array $answer) use ($sentMs): void {
            $this->claimed = [];
            $this->leaseMs = (float) $answer['leaseMs'];
            $this->beatMs = (float) $answer['beatMs'];
            $this->take($answer['jobs'], $sentMs);
        };
        $this->calls->send('claim', $body, $done, timeoutMs: (int) ($this->wait * 1000) + 10_000);
    }

    /** @param list<array<string, mixed>> $jobs */
    private function take(array $jobs, float $sentMs): void
    {
        $taken = array_map(fn (array $job): Run => new Run($job, $sentMs + $this->leaseMs), $jobs);
        foreach ($taken as $run) {
            // From now on it has a slot, and beats name it.
            $this->runs[$run->handle()] = $run;
        }
        if (Calls::nowMs() - $sentMs <= $this->leaseMs / 2) {
            array_map($this->begin(...), $taken);
            return;
        }
        // The answer was read late: what is still ours is asked first.
        foreach (array_chunk($taken, self::RUNS_MAX) as $some) {
            $this->beatFor($some, tries: 3, then: function (Run $run, string $word): void {
                $word === 'ok' ? $this->begin($run) : $this->forget($run);
            });
        }
    }

    private function begin(Run $run): void
    {
        if (!$run->isAtMostOnce()) {
            $this->fork($run);
            return;
        }
        $this->calls->send('begin', ['worker' => $this->name, 'run' => $run->handle()], function (array $answer) use ($run): void {
            in_array($answer['result'] ?? '', ['ok', 'already'], true) ? $this->fork($run) : $this->forget($run);
        });
    }

    private function fork(Run $run): void
    {
        [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = pcntl_fork();
        if ($pid === 0) {
            fclose($ours);
            // Where the worker dies, each of its handlers hears it.
            foreach ($this->runs as $other) {
                $other->line !== null && fclose($other->line);
            }
            $this->handle($run, $theirs);
        }
        fclose($theirs);
        stream_set_blocking($ours, false);
        $run->line = $ours;
        $run->pid = $pid > 0 ? $pid : null;
        if ($pid < 0) {
            $run->end = ['end' => 'fail', 'error' => 'no process could be made for the handler', 'kind' => 'fork'];
            $this->ended($run);
        }
    }

    /** In the process of the handler. It never returns, and runs none of the worker's own clean-up. */
    private function handle(Run $run, mixed $line): never
    {
        // A stop of the worker is told over the line; the signal goes to the whole group of a terminal.
        pcntl_signal(SIGTERM, SIG_IGN);
        pcntl_signal(SIGINT, SIG_IGN);
        try {
            $end = Ends::ofResult(($this->handler)(new Job($run->job, $line)));
        } catch (\Throwable $thrown) {
            $end = Ends::ofThrown($thrown);
        }
        Line::say($line, ['end' => $end]);
        fflush(STDOUT);
        posix_kill(getmypid(), SIGKILL);
        exit(0);
    }

    /** Hears what handlers say, and which processes are over. */
    private function reap(): void
    {
        foreach ($this->runs as $run) {
            if ($run->line === null) {
                continue;
            }
            while (is_string($text = fgets($run->line))) {
                $run->heard .= $text;
                if (!str_ends_with($run->heard, "\n")) {
                    continue;
                }
                $said = json_decode($run->heard, true) ?? [];
                $run->heard = '';
                $run->told = $said['told'] ?? $run->told;
                $run->end = $said['end'] ?? $run->end;
            }
            if (feof($run->line)) {
                fclose($run->line);
                $run->line = null;
                pcntl_waitpid((int) $run->pid, $status);
                $run->end ??= ['end' => 'fail', 'error' => 'the process of the handler died', 'kind' => 'died'];
                $this->ended($run);
            }
        }
    }

    private function ended(Run $run): void
    {
        $this->forget($run);
        $isLost = in_array($run->why, self::LOST, true);
        // What is not ours any more, and what goes back at a stop, is not settled.
        if ($run->end === null || $isLost || ($run->why === 'shutdown' && $run->end['end'] !== 'complete')) {
            return;
        }
        $this->ends[] = ['run' => $run->handle()] + $run->end;
    }

    private function forget(Run $run): void
    {
        unset($this->runs[$run->handle()]);
    }

    /** @return list<array<string, mixed>> */
    private function takeEnds(): array
    {
        return array_splice($this->ends, 0, self::RUNS_MAX);
    }

    /** Ends go with the next claim; while one waits, or none comes any more, they have a call of their own. */
    private function settle(): void
    {
        if ($this->ends !== [] && ($this->isStopping || $this->calls->has('claim')) && !$this->calls->has('settle')) {
            $this->calls->send('settle', ['worker' => $this->name, 'runs' => $this->takeEnds()], fn () => null);
        }
    }

    private function beat(): void
    {
        if (Calls::nowMs() - $this->beatenMs < $this->beatMs || $this->calls->has('beat')) {
            return;
        }
        $this->beatenMs = Calls::nowMs();
        $due = array_filter($this->runs, $this->isExtended(...));
        foreach (array_chunk($due, self::RUNS_MAX) as $some) {
            // A later beat says the same, and more.
            $this->beatFor($some, tries: 1, then: function (Run $run, string $word): void {
                if ($word === '') {
                    $this->beatenMs = Calls::nowMs() - $this->beatMs * 0.9;
                }
            });
        }
    }

    /** A run whose handler has begun, and which is ours as long as beats are answered. */
    private function isExtended(Run $run): bool
    {
        return $run->pid !== null && !$run->isAtMostOnce() && !in_array($run->why, self::LOST, true);
    }

    /**
     * @param list<Run> $some
     * @param \Closure(Run, string): void $then hears the word of each; '': nobody answered
     */
    private function beatFor(array $some, int $tries, \Closure $then): void
    {
        $sentMs = Calls::nowMs();
        $runs = array_map(fn (Run $run): array => ['run' => $run->handle()] + $run->told, $some);
        $done = function (?array $answer) use ($some, $sentMs, $then): void {
            foreach ($some as $at => $run) {
                $word = (string) ($answer['results'][$at] ?? '');
                if ($word === 'ok' || $word === 'cancel') {
                    $run->untilMs = $sentMs + $this->leaseMs;
                }
                match ($word) {
                    'cancel' => $run->stop('cancelled', self::STOP_MS),
                    'fenced', 'gone' => $run->stop('lease lost', self::STOP_MS),
                    'timeout' => $run->stop('timeout', self::STOP_MS),
                    default => null,
                };
                $then($run, $word);
            }
        };
        $this->calls->send('beat', ['worker' => $this->name, 'runs' => $runs], $done, $tries, (int) max(200, $this->beatMs / 2));
    }

    private function leave(): void
    {
        // A claim that waits takes nothing any more; nobody has read what became of the ends that went with it.
        $this->calls->dropClaims();
        $this->ends = [...$this->claimed, ...$this->ends];
        $this->claimed = [];
        $untilMs = Calls::nowMs() + $this->grace * 1000;
        while ($this->runs !== [] && Calls::nowMs() < $untilMs) {
            $this->turn();
        }
        foreach ($this->runs as $run) {
            $run->stop('shutdown', 1000);
        }
        $untilMs = Calls::nowMs() + 10_000;
        while (($this->runs !== [] || $this->ends !== [] || $this->calls->has('settle')) && Calls::nowMs() < $untilMs) {
            $this->turn();
        }
        $this->calls->send('leave', ['worker' => $this->name], fn () => null, tries: 5);
        while ($this->calls->has('leave')) {
            $this->calls->turn(10);
        }
    }
}
