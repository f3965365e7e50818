#!lua flags=allow-oom
-- enrol: the stream of ready entries gets its group, and the group one more consumer, unless they are there.
-- KEYS  1 ready
-- ARGV  1 consumer
--       '' = the group only
-- RETURN 'ok' | 'already'
-- The group begins at 0, never at the end: one that is made again must see what arrived before it. A script, because a
-- Redis at its memory limit refuses the plain commands, and then no new worker could drain it.
local ready, consumer, reply = KEYS[1], ARGV[1], 'already'
local grouped = false
for _, group in ipairs(redis.call('EXISTS', ready) == 1 and redis.call('XINFO', 'GROUPS', ready) or {}) do
  grouped = grouped or group[2] == 'workers'
end
if not grouped then
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0', 'MKSTREAM')
  reply = 'ok'
end
if consumer ~= '' and redis.call('XGROUP', 'CREATECONSUMER', ready, 'workers', consumer) == 1 then reply = 'ok' end
return reply
