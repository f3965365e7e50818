#!lua flags=allow-oom
-- pause: promotion and starts of one partition rest until resume. What runs goes on.
-- KEYS  1 meta
-- ARGV  1 now  2 reason
--       now ms, '' = server time; reason: a text for people, may be empty
-- RETURN {'ok' | 'already', since ms and reason}; the first pause stays as it is
local meta, now = KEYS[1], tonumber(ARGV[1])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
local paused = redis.call('HGET', meta, 'paused')
if paused then return { 'already', paused } end
paused = ('%.0f %s'):format(now, ARGV[2])
redis.call('HSET', meta, 'paused', paused)
return { 'ok', paused }
