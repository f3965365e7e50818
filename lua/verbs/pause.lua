#!lua flags=allow-oom
-- pause: promotion and starts of one partition rest until resume. What runs goes on.
-- USES  clock
-- KEYS  1 meta
-- ARGV  1 now  2 reason
--       now ms, '' = server time; reason: a text for people, may be empty
-- RETURN {'ok' | 'already', since ms and reason}; the first pause stays as it is
local meta = KEYS[1]
local now, reason = clock(ARGV[1]), ARGV[2]
local paused = redis.call('HGET', meta, 'paused')
if paused then return { 'already', paused } end
paused = ('%.0f %s'):format(now, reason)
redis.call('HSET', meta, 'paused', paused)
return { 'ok', paused }
