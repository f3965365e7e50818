<?php

declare(strict_types=1);

namespace Duestream;

/** Throw it when trying again cannot help: the job becomes a dead letter at once. */
final class Fatal extends \RuntimeException
{
}
