#!lua flags=allow-oom
-- enrol: the stream of ready entries gets its group, and the group one more consumer, unless they
-- are there.
-- USES  group
-- KEYS  1 ready
-- ARGV  1 consumer
--       '' = the group only
-- RETURN 'ok' | 'already'
-- The group begins at 0, never at the end: one that is made again must see what arrived before it.
-- A script, because a Redis at its memory limit refuses the plain commands, and then no new worker
-- could drain it.
local ready, consumer, reply = KEYS[1], ARGV[1], 'already'
if not groupOf(ready) then
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0', 'MKSTREAM')
  reply = 'ok'
end
if consumer ~= '' then
  local made = redis.call('XGROUP', 'CREATECONSUMER', ready, 'workers', consumer)
  reply = made == 1 and 'ok' or reply
end
return reply
