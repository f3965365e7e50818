#!lua flags=allow-oom
-- resign: the leader gives its lease back and says so, so that the next one need not wait for the lease to run out.
-- KEYS  1 leader  2 wake
-- ARGV  1 term
-- RETURN 'ok' | 'lost'
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])
redis.call('SPUBLISH', KEYS[2], 'resigned')
return 'ok'
