#!lua flags=allow-oom
-- declare: a queue enters the registry with its layout; who is first decides.
-- KEYS  1 queues  2 wake
-- ARGV  1 queue  2 layout
--       queue: its name; layout: partitions and generation, as JSON
-- RETURN the layout that holds: the caller's, or that of whoever was first
-- A few bytes per queue, allowed at the memory limit as well: without its line nobody would drain
-- the queue.
local queues, wake, queue, layout = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('HSETNX', queues, queue, layout) == 1 then
  redis.call('SPUBLISH', wake, 'queue ' .. queue)
end
return redis.call('HGET', queues, queue)
