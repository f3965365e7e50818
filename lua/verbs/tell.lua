#!lua flags=allow-oom
-- tell: what a process says of itself in its heartbeat is replaced, if it still is what was read.
-- USES  clock
-- KEYS  1 beat  2 wake
-- ARGV  1 now  2 process  3 before  4 after
--       now ms, '' = server time; process: its id; before and after: who it is, as JSON
-- RETURN ok (the others are told) | changed (it says something else by now) | gone (it has no
--        heartbeat)
-- So a worker is paused: it finds the pause where it prolongs its heartbeat. The time to live stays
-- as it is, so a pause goes with the process. With allow-oom, because a full Redis is a reason to
-- pause somebody.
local beat, wake = KEYS[1], KEYS[2]
local _, process, before, after = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local said = redis.call('GET', beat)
if not said then return 'gone' end
if said ~= before then return said == after and 'ok' or 'changed' end
redis.call('SET', beat, after, 'KEEPTTL')
redis.pcall('SPUBLISH', wake, 'here ' .. process)
return 'ok'
