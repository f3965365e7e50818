<?php

/** The program that `duestream conformance` plays its faults against: duestream conformance --worker "php probe.php". */

declare(strict_types=1);

use Duestream\Job;
use Duestream\Stopped;
use Duestream\Worker;

require __DIR__ . '/autoload.php';

function say(string ...$words): void
{
    fwrite(STDOUT, implode(' ', $words) . "\n");
}

$handle = function (Job $job): void {
    say('began', $job->id, $job->token);
    if ($job->data['do'] === 'fail') {
        throw new RuntimeException('on purpose');
    }
    if ($job->data['do'] === 'wait') {
        while ($job->stopped() === null) {
            usleep(10_000);
        }
        say('stopped', $job->id);
        throw new Stopped((string) $job->stopped());
    }
};

$urls = explode(',', (string) getenv('DUESTREAM_URLS'));
$worker = new Worker($urls, (string) getenv('DUESTREAM_QUEUE'), $handle, concurrency: 5, grace: 0.5);
if (getenv('DUESTREAM_FORK') === '1' && pcntl_fork() === 0) {
    try {
        $worker->run();
    } catch (LogicException) {
        say('refused');
    }
    exit(0);
}
$worker->run();
