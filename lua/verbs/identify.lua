#!lua flags=allow-oom
-- identify: the data of a namespace get an id of their own, unless they have one.
-- KEYS  1 id
-- ARGV  1 candidate
--       candidate: a random id
-- RETURN the id that holds: the caller's, or that of whoever was first
-- It is part of the data: it comes back with them after a restart and goes to a replica, and
-- another Redis has another one or none. A few bytes, allowed at the memory limit as well: who
-- starts then must not go without.
local id, candidate = KEYS[1], ARGV[1]
redis.call('SET', id, candidate, 'NX')
return redis.call('GET', id)
