#!lua flags=allow-oom
-- resume: a paused partition works again, and its leader is told to look at once.
-- USES  clock, gate, pausing, diary
-- KEYS  1 meta  2 wake  3 diary
-- ARGV  1 now  2 by
--       now ms, '' = server time; by: who resumes it
-- RETURN {'ok', since ms and reason of the pause}; {'already', ''} when it was not paused
-- While paused the leader advertises 0, so no producer nudges it: the nudge has to come from here.
-- The mark of a queue in strict order stays, see the part pausing.
local meta, wake, diary = KEYS[1], KEYS[2], KEYS[3]
local _, by = clock(ARGV[1]), ARGV[2]
local paused = redis.call('HGET', meta, 'paused')
local mark, said = versionIn(paused), saidIn(paused)
if not said then return { 'already', '' } end
if mark then
  -- @keep-mark
  redis.call('HSET', meta, 'paused', mark)
else
  redis.call('HDEL', meta, 'paused')
end
local since, reason = said:match('^(%d+) ?(.*)$')
enter(diary, { 'what', 'resumed', 'by', by, 'from', since or '', 'why', reason or '' })
redis.pcall('SPUBLISH', wake, '0')
return { 'ok', said }
