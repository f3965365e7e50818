<?php

declare(strict_types=1);

/** For programs without Composer. */
spl_autoload_register(function (string $class): void {
    if (str_starts_with($class, 'Duestream\\')) {
        require __DIR__ . '/src/' . substr($class, strlen('Duestream\\')) . '.php';
    }
});
