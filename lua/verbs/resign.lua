#!lua flags=allow-oom
-- resign: the leader gives its lease back and says so, so that the next one need not wait for the
-- lease to run out.
-- KEYS  1 leader  2 wake
-- ARGV  1 term
-- RETURN 'ok' | 'lost'
local leader, wake, term = KEYS[1], KEYS[2], ARGV[1]
if redis.call('GET', leader) ~= term then return 'lost' end
redis.call('DEL', leader)
redis.pcall('SPUBLISH', wake, 'resigned')
return 'ok'
