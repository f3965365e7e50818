#!lua flags=allow-oom
-- renew: the leader keeps its lease. Compares the whole term, so that nobody renews another's.
-- KEYS  1 leader
-- ARGV  1 term  2 lease
--       term <process>:<epoch>:<lease>; lease ms
-- RETURN 'ok' | 'lost'
-- PEXPIRE, not SET: a Redis at its memory limit refuses SET and would depose every leader just
-- then.
local leader, term, lease = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', leader) ~= term then return 'lost' end
redis.call('PEXPIRE', leader, lease)
return 'ok'
