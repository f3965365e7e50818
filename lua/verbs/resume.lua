#!lua flags=allow-oom
-- resume: a paused partition works again, and its leader is told to look at once.
-- USES  clock
-- KEYS  1 meta  2 wake
-- ARGV  1 now
--       now ms, '' = server time
-- RETURN {'ok', since ms and reason of the pause}; {'already', ''} when it was not paused
-- While paused the leader advertises 0, so no producer nudges it: the nudge has to come from here.
local meta, wake, _ = KEYS[1], KEYS[2], clock(ARGV[1])
local paused = redis.call('HGET', meta, 'paused')
if not paused then return { 'already', '' } end
redis.call('HDEL', meta, 'paused')
redis.pcall('SPUBLISH', wake, '0')
return { 'ok', paused }
