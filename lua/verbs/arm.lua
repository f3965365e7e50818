#!lua
-- arm: a schedule gets its place among those that fire, and is looked at at once. What it fired
-- before stays known.
-- USES  clock
-- KEYS  1 fires  2 fired  3 meta  4 wake
-- ARGV  1 now  2 generation  3 name
--       now ms, '' = server time
-- RETURN armed | again (it was there) | unreadable (its state is left as it is); or {'moved',
--        generation} when the partition has another generation
-- Each call changes the state, which ends with the time of the last one: what a leader computed
-- from the definition before it, fires and forgets nothing after it, and whoever looks within a
-- minute of it looks once more (see fire).
-- No allow-oom: a full Redis refuses it up front.
local fires, fired, meta, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, layout, name = clock(ARGV[1]), ARGV[2], ARGV[3]
local generation = redis.call('HGET', meta, 'generation') or '0'
if generation ~= layout then return { 'moved', generation } end
local state = redis.call('HGET', fired, name)
local known, armed = (state or '0 0 0 - - 0'):match('^(%d+ %d+ %d+ [!-~]+ [!-~]+) (%d+)$')
if known then
  redis.call('HSET', fired, name, ('%s %.0f'):format(known, math.max(armed + 1, now)))
end
redis.call('ZADD', fires, 0, name)
redis.pcall('SPUBLISH', wake, 'schedules')
return not known and 'unreadable' or state and 'again' or 'armed'
