#!lua flags=allow-oom
-- pause: promotion and starts of one partition rest until resume. What runs goes on.
-- USES  clock, gate, pausing, diary
-- KEYS  1 meta  2 diary
-- ARGV  1 now  2 reason  3 by
--       now ms, '' = server time; reason: a text for people, may be empty; by: who pauses it
-- RETURN {'ok' | 'already', since ms and reason}; the first pause stays as it is
-- The mark of a queue in strict order stays in front of it, see the part pausing.
local meta, diary = KEYS[1], KEYS[2]
local now, reason, by = clock(ARGV[1]), ARGV[2], ARGV[3]
local paused = redis.call('HGET', meta, 'paused')
local before = saidIn(paused)
if before then return { 'already', before } end
local said = ('%.0f %s'):format(now, reason)
redis.call('HSET', meta, 'paused', pausedAs(versionIn(paused), said))
enter(diary, { 'what', 'paused', 'by', by, 'why', reason })
return { 'ok', said }
