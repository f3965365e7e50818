#!lua
-- define: the definition of a schedule is written or deleted, if it still is the one that was read.
-- USES  clock
-- KEYS  1 schedules
-- ARGV  1 now  2 name  3 before  4 after
--       now ms, '' = server time
--       before: as it was read, '' = there was none; after: '' = delete it
-- RETURN ok (also when it is so already) | changed (somebody else has written it since)
-- No allow-oom: a full Redis refuses it up front.
local schedules = KEYS[1]
local _, name, before, after = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local current = redis.call('HGET', schedules, name) or ''
if current == after then return 'ok' end
if current ~= before then return 'changed' end
if after == '' then
  redis.call('HDEL', schedules, name)
else
  redis.call('HSET', schedules, name, after)
end
return 'ok'
