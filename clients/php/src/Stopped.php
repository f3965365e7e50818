<?php

declare(strict_types=1);

namespace Duestream;

/** The run is to end: `Job::check` throws it. Its message says why. */
final class Stopped extends \RuntimeException
{
}
