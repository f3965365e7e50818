#!lua flags=allow-oom
-- undeclare: a queue leaves the registry with its settings, or settings without a queue go.
-- USES  clock
-- KEYS  1 queues  2 wake
-- ARGV  1 now  2 queue  3 mode  then per setting: setting
--       now ms, '' = server time
--       mode: queue = it goes with its settings | settings = only these, if it is not there;
--       setting: its name
-- RETURN the number of fields that went; the movers are told of a queue
-- One step, so that nobody who declares the queue meanwhile loses the settings that came with it.
local queues, wake = KEYS[1], KEYS[2]
local _, queue, mode = clock(ARGV[1]), ARGV[2], ARGV[3]
local gone = 0
if mode == 'settings' and redis.call('HGET', queues, queue) then return 0 end
if mode == 'queue' then
  gone = redis.call('HDEL', queues, queue)
end
for at = 4, #ARGV do
  gone = gone + redis.call('HDEL', queues, queue .. ':' .. ARGV[at])
end
if mode == 'queue' then
  redis.pcall('SPUBLISH', wake, 'gone ' .. queue)
end
return gone
