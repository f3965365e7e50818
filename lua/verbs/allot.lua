#!lua flags=allow-oom
-- allot: a partition gets its share of the limits of its queue, or has none from now on.
-- USES  clock
-- KEYS  1 leader  2 meta
-- ARGV  1 now  2 term  3 pending  4 bytes
--       now ms, '' = server time
--       term: the leader's value, or '' = whoever has set the limits; pending: jobs that wait or
--       run, the most; bytes of their records, the most; 0 = as many as there are
-- RETURN ok | same (it has it already) | fenced (the term is not the leader's)
-- The registry of queues is in another slot and is written first. Who dies in between leaves this
-- to the leader, which compares when it begins to lead and whenever the registry says something
-- else. A leader that was deposed writes nothing, so it does not bring a removed queue back.
local leader, meta = KEYS[1], KEYS[2]
local _, term, pending, bytes = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
if term ~= '' and redis.call('GET', leader) ~= term then return 'fenced' end
local quota = pending .. ' ' .. bytes
local before = redis.call('HGET', meta, 'quota') or '0 0'
if before == quota then return 'same' end
if bytes == '0' then
  redis.call('HDEL', meta, 'held')
end
if quota == '0 0' then
  redis.call('HDEL', meta, 'quota')
else
  redis.call('HSET', meta, 'quota', quota)
end
return 'ok'
