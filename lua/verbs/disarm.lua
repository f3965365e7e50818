#!lua flags=allow-oom
-- disarm: a schedule that is gone fires no more, and what it fired is forgotten. Its jobs stay.
-- USES  clock
-- KEYS  1 fires  2 fired
-- ARGV  1 now  2 name  3 state
--       now ms, '' = server time
--       state: only while it was neither fired nor armed since it was read; '' = whatever it did
-- RETURN ok | unknown | changed
local fires, fired = KEYS[1], KEYS[2]
local _, name, state = clock(ARGV[1]), ARGV[2], ARGV[3]
local current = redis.call('HGET', fired, name)
if state ~= '' and current and current ~= state then return 'changed' end
local gone = redis.call('ZREM', fires, name) + redis.call('HDEL', fired, name)
return gone > 0 and 'ok' or 'unknown'
