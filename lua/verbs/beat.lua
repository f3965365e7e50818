#!lua flags=allow-oom
-- beat: a process says that it lives. Written anew only if its key has vanished.
-- KEYS  1 beat  2 alive  3 wake
-- ARGV  1 process  2 identity  3 ttl
--       process: its id; identity: who it is, as JSON; ttl ms
-- RETURN 'kept' | 'anew' (the others are told)
-- The key comes last: a call that was cut off before it finds nothing to keep, and does the rest
-- again. Without allow-oom a Redis at its memory limit would refuse every process that starts, and
-- nobody could drain it.
local beat, alive, wake = KEYS[1], KEYS[2], KEYS[3]
local process, identity, ttl = ARGV[1], ARGV[2], ARGV[3]
if redis.call('PEXPIRE', beat, ttl) == 1 then return 'kept' end
redis.call('SADD', alive, process)
redis.call('SET', beat, identity, 'PX', ttl)
redis.pcall('SPUBLISH', wake, 'here ' .. process)
return 'anew'
