#!lua flags=allow-oom
-- resign: the leader gives its lease back and says so, so that the next one need not wait for the
-- lease to run out.
-- USES  diary
-- KEYS  1 leader  2 wake  3 diary
-- ARGV  1 term
-- RETURN 'ok' | 'lost'
local leader, wake, diary, term = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('GET', leader) ~= term then return 'lost' end
redis.call('DEL', leader)
enter(diary, { 'what', 'resigned', 'by', term:match('^[^:]*') })
redis.pcall('SPUBLISH', wake, 'resigned')
return 'ok'
